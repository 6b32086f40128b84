"""Results as data: rows to columns and back, invalid rows included."""

import numpy as np
import pytest

from pyscf_ipu.result import TERM_NAMES, Row, invalid_row, single, stack_rows, unstack


def row(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed
    return Row(
        energy=float(rng.normal()),
        homo=-0.5,
        lumo=0.25,
        dipole=rng.normal(size=3),
        converged=True,
        cycles=9,
        commutator_norm=1e-6,
        energy_std=1e-7,
        terms=tuple(rng.normal(size=len(TERM_NAMES)).tolist()),
        status="converged",
        mo_energy=rng.normal(size=n),
        mo_coeff=rng.normal(size=(n, n)),
        mulliken_charges=rng.normal(size=3),
        density_matrix=rng.normal(size=(n, n)),
    )


def test_rows_survive_the_journey_through_columns():
    rows = [row(0), invalid_row("no such thing"), row(3)]
    result = stack_rows(rows, orbitals=True)
    assert result.energy.shape == (3,)
    assert result.dipole.shape == (3, 3)
    assert result.gap[0] == 0.75
    assert [len(e) for e in result.mo_energy] == [2, 0, 5]
    for before, after in zip(rows, unstack(result), strict=True):
        for name, value in vars(before).items():
            np.testing.assert_array_equal(getattr(after, name), value, err_msg=name)


def test_without_orbitals_they_are_none():
    result = stack_rows([row(0)], orbitals=False)
    assert result.mo_coeff is None
    assert result.density_matrix is None
    assert unstack(result)[0].mo_coeff is None


def test_single_takes_the_axis_away():
    one = single(stack_rows([row(1)], orbitals=True))
    assert np.ndim(one.energy) == 0
    assert one.dipole.shape == (3,)
    assert one.mo_coeff.shape == (3, 3)
    assert set(one.energy_terms) == set(TERM_NAMES)
    assert one.status == "converged"


def test_an_invalid_row_holds_no_numbers():
    found = invalid_row("two atoms on one point")
    assert found.status == "invalid: two atoms on one point"
    numbers = [found.energy, found.homo, found.lumo, found.energy_std, *found.terms, *found.dipole]
    assert np.isnan(numbers).all()
    assert not found.converged


def test_no_rows_at_all():
    result = stack_rows([], orbitals=False)
    assert result.energy.shape == (0,)
    assert result.dipole.shape == (0, 3)
    assert result.energy_terms["kinetic"].shape == (0,)


def test_a_result_cannot_be_changed():
    with pytest.raises(AttributeError):
        row(0).energy = 1.0
