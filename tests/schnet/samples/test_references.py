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
    assert totals([planted(300, 0)]).determined
    few = totals([planted(3, 0)])
    assert not few.determined
    assert not totals([planted(1, 0), planted(1, 0), planted(1, 0), planted(1, 0)]).determined
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


def test_json_keeps_every_bit():
    found = fitted(planted(100, 4, noise=0.01))
    assert AtomReferences.from_dict(json.loads(json.dumps(found.to_dict()))) == found
