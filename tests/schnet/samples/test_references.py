"""References of the elements: against NumPy's own fit, planted values, one composition for all."""

import json

import numpy as np
import pytest
from listed_source import in_parts, many, molecule

from schnet.errors import UserError
from schnet.samples.references import EXACT_SCALE, AtomReferences, Totals, composition
from schnet.samples.samples import Sample, Samples

PLANTED = {1: -0.6, 6: -38.1, 7: -54.8, 17: -460.1}


def planted(rows, seed, noise=0.0, elements=(1, 6, 7)):
    """Random compositions whose energy is a sum of their atoms, a constant and noise."""
    random = np.random.default_rng(seed)
    found = []
    for i in range(rows):
        numbers = random.choice(elements, size=random.integers(2, 15)).astype(np.uint8)
        energy = sum(PLANTED[z] for z in numbers.tolist()) + 0.25 + noise * random.normal()
        positions = np.zeros((len(numbers), 3), np.float32)
        found.append(Sample(numbers, positions, energy, "", f"row {i}"))
    return Samples.of(found)


def totals(parts):
    counted = Totals()
    for samples in parts:
        counted.add(samples)
    return counted


def fitted(samples, size=37):
    return AtomReferences.fit(totals(in_parts(samples, size).parts()), extensive=True)


def test_planted_references_come_back():
    found = fitted(planted(300, 0))
    assert found.elements == (1, 6, 7)
    assert found.values == pytest.approx([PLANTED[z] for z in found.elements], abs=1e-10)
    assert found.constant == pytest.approx(0.25, abs=1e-10)
    assert found.scale == EXACT_SCALE  # nothing is left to scale by


def test_rows_that_do_not_determine_every_element_are_noticed():
    assert not len(totals([planted(300, 0)]).undetermined)
    few = totals([planted(3, 0)])
    assert len(few.undetermined) == 1
    assert len(totals([planted(1, 0)] * 4).undetermined) == 3
    found = AtomReferences.fit(few, extensive=True)
    np.testing.assert_allclose(found.baseline(planted(3, 0)), planted(3, 0).targets, rtol=1e-12)
    assert found.scale == EXACT_SCALE


def test_a_millihartree_is_kept_in_hundreds_of_hartree():
    samples = planted(2000, 1, noise=1e-3)
    found = fitted(samples)
    matrix = np.hstack([composition(samples)[:, [1, 6, 7]], np.ones((2000, 1))]).astype(float)
    solution, squares, *_ = np.linalg.lstsq(matrix, samples.targets)
    assert [*found.values, found.constant] == pytest.approx(solution.tolist(), abs=1e-9)
    assert found.scale == pytest.approx(float(np.sqrt(squares[0] / 2000)), rel=1e-7)
    left = found.subtract(samples)
    assert (left.mean(), left.std()) == (pytest.approx(0, abs=1e-6), pytest.approx(1, rel=1e-6))
    np.testing.assert_allclose(found.add(samples, left), samples.targets, rtol=0, atol=1e-12)


def test_totals_do_not_depend_on_the_parts():
    samples = planted(400, 2, noise=0.1)
    late = Samples.concatenate([samples, planted(40, 3, noise=0.1, elements=(1, 17))])
    whole = totals([late])
    others = in_parts(planted(40, 3, noise=0.1, elements=(1, 17)), 9).parts()
    halves = totals([samples, *others, Samples.of([])])
    assert whole.n == halves.n == 440
    assert whole.elements == halves.elements == (1, 6, 7, 17)
    np.testing.assert_allclose(
        halves.factor.T @ halves.factor, whole.factor.T @ whole.factor, rtol=1e-12, atol=1e-9
    )
    assert halves.mean == pytest.approx(late.targets.mean(), rel=1e-12)
    assert halves.variance == pytest.approx(late.targets.var(), rel=1e-10)
    assert len(halves.factor) <= 6


def test_one_composition_for_all():
    rows = [molecule(2 * k, 4 * k, -78.5 * k + 0.1 * (k % 2), f"row {k}") for k in range(1, 9)]
    samples = Samples.of(rows)
    found = fitted(samples, 3)
    assert np.isfinite([*found.values, found.constant, found.scale]).all()
    left = samples.targets - found.baseline(samples)
    assert np.abs(left).max() < 0.1  # as good as a fit to k alone
    same = fitted(Samples.of([molecule(2, 4, target) for target in (1.0, 2.0, 6.0)]))
    assert same.baseline(Samples.of([molecule(2, 4)])) == pytest.approx(3.0)
    assert same.scale == pytest.approx(np.std([1.0, 2.0, 6.0]))


def test_targets_that_do_not_grow_have_only_a_mean():
    samples = many(50)
    found = AtomReferences.fit(totals([samples]), extensive=False)
    assert found.values == (0.0, 0.0)
    assert (found.constant, found.scale) == (
        pytest.approx(24.5),
        pytest.approx(samples.targets.std()),
    )
    constant = AtomReferences.fit(totals([Samples.of([molecule(1, 4, 0.3)])]), extensive=False)
    assert (constant.constant, constant.scale) == (pytest.approx(0.3), 1.0)


@pytest.mark.parametrize("extensive", [True, False])
def test_elements_that_no_training_row_had(extensive):
    found = AtomReferences.fit(totals([many(50)]), extensive)
    strange = Samples.of(
        [
            molecule(1, 4),
            Sample(
                np.array([6, 9, 17, 1], np.uint8),
                np.zeros((4, 3), np.float32),
                0.0,
                "CF",
                "frame 7",
            ),
        ]
    )
    with pytest.raises(UserError, match=r"frame 7 \(CF\) has F, Cl, .*; the model is for H, C"):
        found.add(strange, np.zeros(2))


def test_no_rows_at_all():
    for extensive in (True, False):
        with pytest.raises(UserError, match="no training rows"):
            AtomReferences.fit(totals([Samples.of([])]), extensive)


FREE = {"H": -0.46, "C": -37.33, "N": -53.86, "F": -98.25, "Cl": -454.0}


def together(rows=60):
    """Rows in which F and Cl occur only together, one of each; energies are planted."""
    base = planted(rows, 5)
    extra = [9, 17]
    energy = PLANTED[17] - 99.0
    found = [
        Sample(
            np.append(row.numbers, extra if i % 2 else []).astype(np.uint8),
            np.zeros((len(row.numbers) + 2 * (i % 2), 3), np.float32),
            row.target + energy * (i % 2),
            "",
            row.key,
        )
        for i, row in enumerate(base)
    ]
    return Samples.of(found)


def of_atoms(*numbers):
    return Samples.of(
        [
            Sample(np.array(z, np.uint8), np.zeros((len(z), 3), np.float32), 0.0, "", "")
            for z in numbers
        ]
    )


def test_free_atoms_decide_what_rows_leave_open_and_nothing_else():
    smallest = fitted(together())
    found = smallest.nearest_to(FREE)
    assert smallest.open_elements == found.open_elements == ["F", "Cl"]
    assert found.elements == (1, 6, 7, 9, 17)
    values = dict(zip(found.elements, found.values, strict=True))
    for z in (1, 6, 7):
        assert values[z] == pytest.approx(PLANTED[z], abs=1e-9)
    # The rows say the sum of the two; the difference is that of the free atoms.
    assert values[9] + values[17] == pytest.approx(PLANTED[17] - 99.0, abs=1e-9)
    assert values[9] - values[17] == pytest.approx(FREE["F"] - FREE["Cl"], abs=1e-9)
    assert smallest.values[3] == pytest.approx(smallest.values[4])  # -279.5: for either, nonsense
    np.testing.assert_allclose(found.baseline(together()), smallest.baseline(together()), atol=1e-9)
    assert found.scale == smallest.scale


def test_a_row_says_what_its_reference_rests_on():
    smallest = fitted(together())
    samples = of_atoms([6, 9, 17], [6, 9, 9], [6, 1], [6, 8])
    assert smallest.determines(samples[:0] if False else samples).tolist() == [
        True,
        False,
        True,
        True,
    ]
    assert smallest.covers(samples).tolist() == [True, False, True, False]
    found = smallest.nearest_to(FREE)
    assert found.covers(samples).tolist() == [True, True, True, False]
    assert "has F whose reference" in found.doubt(samples[1].numbers)
    assert found.doubt(samples[1].numbers).endswith("value rests on free atoms")
    assert smallest.doubt(samples[1].numbers).endswith("a value would mean nothing")
    assert "has O, which no training row had" in found.doubt(samples[3].numbers)
    with pytest.raises(UserError, match="do not determine: a value"):
        smallest.baseline(samples.take(np.array([1])))
    assert "F -" in found.as_text()
    assert found.as_text().count(" *") == 2


def test_free_atoms_change_no_determined_fit():
    found = fitted(planted(300, 0, noise=0.1))
    assert found.nearest_to(FREE) is found
    assert not found.open_elements
    lacking = fitted(together())
    assert lacking.nearest_to({"H": -0.46, "F": -98.25}) is lacking  # none of Cl


def test_one_composition_is_predicted_and_others_are_not():
    same = fitted(Samples.of([molecule(2, 4, target) for target in (-78.0, -78.1)]))
    assert same.covers(Samples.of([molecule(2, 4), molecule(3, 4)])).tolist() == [True, False]
    assert "has H, C whose" in same.doubt(np.array([1, 6], np.uint8))
    # The energy of the bonds is shared: nearest to the free atoms, not to zero.
    found = same.nearest_to(FREE)
    assert found.values == pytest.approx((FREE["H"], FREE["C"]), abs=0.6)


def test_json_keeps_every_bit():
    found = fitted(planted(100, 4, noise=0.01))
    record = json.loads(json.dumps(found.to_dict()))
    assert AtomReferences.from_dict(record) == found
    del record["undetermined"], record["from_free_atoms"]  # of an earlier version
    assert AtomReferences.from_dict(record) == found
    found = fitted(together()).nearest_to(FREE)
    assert AtomReferences.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    damaged = found.to_dict() | {"undetermined": [[1.0, 2.0]]}
    with pytest.raises(UserError, match="damaged"):
        AtomReferences.from_dict(damaged)
