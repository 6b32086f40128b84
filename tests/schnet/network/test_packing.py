from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packs import graphs, qm9

from schnet.network.pack import Graphs, PackShape, centres, fill, nearest, pairs, stack
from schnet.network.packing import deal, shape_for

ALL = Graphs(1e9, 28)


def fill_of(sizes, molecules, seed=0):
    shape = shape_for(Counter(sizes.tolist()), ALL, molecules)
    packs = deal(sizes, shape, ALL, np.random.default_rng(seed))
    return shape, packs


@settings(max_examples=60)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=120), st.integers(1, 20), st.booleans())
def test_every_molecule_is_in_one_pack_and_fits(sizes, molecules, shuffled):
    sizes = np.array(sizes)
    shape = shape_for(Counter(sizes.tolist()), ALL, molecules)
    packs = deal(sizes, shape, ALL, np.random.default_rng(0) if shuffled else None)
    assert sorted(i for pack in packs for i in pack) == list(range(len(sizes)))
    for pack in packs:
        assert len(pack) <= shape.molecules
        assert sizes[pack].sum() <= shape.atoms
        assert sum(ALL.most_pairs(n) for n in sizes[pack].tolist()) <= shape.pairs


def test_packs_of_real_sizes_are_nearly_full():
    """Sizes drawn from those of QM9 molecules; the last pack of a set may be less full."""
    sizes = np.random.default_rng(0).choice(qm9().sizes, 5000)
    for molecules in (8, 32):
        shape, packs = fill_of(sizes, molecules)
        assert sizes.sum() / (len(packs) * shape.atoms) >= 0.95
        used = sum(ALL.most_pairs(n) for n in sizes.tolist())
        assert used / (len(packs) * shape.pairs) >= 0.95


def test_another_seed_deals_otherwise_and_the_same_one_alike():
    sizes = qm9().sizes
    assert fill_of(sizes, 8, 1)[1] == fill_of(sizes, 8, 1)[1]
    assert fill_of(sizes, 8, 1)[1] != fill_of(sizes, 8, 2)[1]


def test_a_molecule_larger_than_a_pack_is_refused():
    with pytest.raises(ValueError, match="molecule of 30 atoms does not fit"):
        deal(np.array([3, 30]), PackShape(20, 4, 400), ALL, None)


def test_a_pack_holds_its_molecules_side_by_side():
    samples, targets = qm9([4, 9, 17]), np.array([1.0, 2.0, 3.0])
    pack = fill(PackShape(70, 4, 900), graphs(), samples, [2, 0], targets)
    a, b = (samples[2], samples[0])
    n = len(a.numbers) + len(b.numbers)
    assert pack.numbers[:n].tolist() == [*a.numbers.tolist(), *b.numbers.tolist()]
    assert not pack.numbers[n:].any()
    np.testing.assert_array_equal(pack.positions_bohr[: len(a.numbers)], a.positions_bohr)
    assert pack.molecule[:n].tolist() == [0] * len(a.numbers) + [1] * len(b.numbers)
    assert pack.target.tolist() == [3.0, 1.0, 0.0, 0.0]
    assert pack.there.tolist() == [True, True, False, False]
    there = pack.to_i | pack.to_j
    i, j = pack.pair_i[there], pack.pair_j[there]
    assert np.all(pack.molecule[i] == pack.molecule[j])
    assert len({*zip(i.tolist(), j.tolist(), strict=True)}) == len(i)


def test_centres_of_mass():
    water = qm9([0])
    found = centres(water)
    from ase.data import atomic_masses

    mass = atomic_masses[water.numbers]
    np.testing.assert_allclose(found[0], mass @ water.positions_bohr / mass.sum(), rtol=1e-5)


def test_an_atom_has_its_nearest_neighbours_only():
    """A chain: with two neighbours each, those of the first atom are the second and third, of which
    not both have the first as a neighbour."""
    n, few = 6, Graphs(1e9, 2)
    i, j = np.tril_indices(n, -1)
    x = np.array([0.0, 1.0, 2.1, 3.3, 4.6, 6.0])
    squares = (x[i] - x[j]) ** 2
    to_i, to_j = nearest(i, j, squares, n, few)
    found = {a: set() for a in range(n)}
    for a, b, ab, ba in zip(i.tolist(), j.tolist(), to_i, to_j, strict=True):
        if ab:
            found[a].add(b)
        if ba:
            found[b].add(a)
    expected = {a: set(np.argsort(np.abs(x - x[a]))[1:3].tolist()) for a in range(n)}
    assert found == expected


def test_pairs_of_large_molecules_are_bounded():
    samples = qm9([59])
    few = Graphs(1e9, 3)
    i, _, to_i, to_j = pairs(samples, few)
    n = int(samples.sizes[0])
    assert len(i) <= few.most_pairs(n)
    assert int(to_i.sum() + to_j.sum()) == 3 * n


def test_stacked_packs_have_leading_axes():
    samples = qm9([4, 9])
    shape = PackShape(40, 1, 400)
    packs = [fill(shape, graphs(), samples, [i], np.zeros(2)) for i in (0, 1)]
    found = stack(packs, (1, 2, 1))
    assert found.numbers.shape == (1, 2, 1, 40)
    np.testing.assert_array_equal(found.numbers[0, 1, 0], packs[1].numbers)
