"""Results as data: of single molecules, of lists, of molecules that were not computed."""

import dataclasses

import numpy as np
import pytest

import pyscf_ipu as pi
from pyscf_ipu.results.result import (
    FAR_HARTREE,
    OF_DENSITY,
    TERM_NAMES,
    MoleculeResult,
    invalid,
    stacked,
)


def single(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed
    return MoleculeResult(
        energy=np.float64(rng.normal()),
        homo=-0.5,
        lumo=0.25,
        gap=0.75,
        dipole=rng.normal(size=3),
        converged=np.bool_(True),
        cycles=np.int64(9),
        commutator_norm=1e-6,
        energy_std=1e-7,
        overlap_smallest=0.1,
        n_dropped=np.int64(0),
        energy_terms=dict(zip(TERM_NAMES, rng.normal(size=len(TERM_NAMES)), strict=True)),
        status="converged",
        mo_energy=rng.normal(size=n),
        mulliken_charges=rng.normal(size=3),
        mo_coeff=rng.normal(size=(n, n)),
        density_matrix=rng.normal(size=(n, n)),
    )


ABSENT = (
    *("dispersion", "forces", "stable", "followed", "settings", "history"),
    *("s_squared", "spin_populations", "stable_unrestricted"),
)
"""Fields that nobody asked for."""


def test_a_list_has_every_field_of_every_molecule():
    ones = [single(0), invalid("no such thing", 2), single(3)]
    result = stacked(ones, orbitals=True)
    assert result.energy.shape == (3,)
    assert result.dipole.shape == (3, 3)
    assert result.gap[0] == 0.75
    assert [len(e) for e in result.mo_energy] == [2, 0, 5]
    for b, one in enumerate(ones):
        for field in dataclasses.fields(one):
            value, column = getattr(one, field.name), getattr(result, field.name)
            if field.name in ABSENT or field.name.startswith("ipu_"):
                assert column is None
            elif field.name == "energy_terms":
                for name in TERM_NAMES:
                    np.testing.assert_array_equal(column[name][b], value[name])
            else:
                np.testing.assert_array_equal(column[b], value, err_msg=field.name)


def test_without_orbitals_they_are_none():
    result = stacked([single(0)])
    assert result.mo_coeff is None
    assert result.density_matrix is None


def test_an_invalid_molecule_has_no_numbers():
    found = invalid("two atoms on one point", 4)
    assert found.status == "invalid: two atoms on one point"
    terms = found.energy_terms.values()
    numbers = [found.energy, found.homo, found.lumo, found.energy_std, *terms, *found.dipole]
    assert np.isnan(numbers).all()
    assert not found.converged
    assert found.mulliken_charges.shape == (4,)
    assert found.forces.shape == (4, 3)


def test_no_molecules_at_all():
    result = stacked([])
    assert result.energy.shape == (0,)
    assert result.dipole.shape == (0, 3)
    assert result.energy_terms["kinetic"].shape == (0,)


def test_a_result_cannot_be_changed():
    with pytest.raises(AttributeError):
        single(0).energy = 1.0


@pytest.mark.parametrize("max_cycles", [1, 2])
def test_what_ends_far_from_any_solution_says_nothing_of_the_molecule(max_cycles):
    lithium_hydride = pi.Molecule([3, 1], [[0, 0, 0], [0, 0, 3.0]])
    found = pi.rks(lithium_hydride, xc="hf", max_cycles=max_cycles)
    far = found.commutator_norm > FAR_HARTREE
    assert far == (max_cycles == 1)
    assert found.status == "not_converged"
    values = [getattr(found, name) for name in OF_DENSITY] + [*found.energy_terms.values()]
    assert {bool(np.isnan(x)) for value in values for x in np.ravel(value)} == {far}
