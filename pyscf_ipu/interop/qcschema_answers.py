"""From the result of a molecule to QCSchema's AtomicResult."""

from importlib.metadata import version

import numpy as np
from jaxtyping import Float, Int
from pyscf import gto
from qcelemental.models import v2

from pyscf_ipu.base.extras import DISTRIBUTION
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.results.result import MoleculeResult

Fields = dict[str, object]
"""Of a model of QCElemental, by name."""


def answer(
    given: v2.AtomicInput, row: MoleculeResult, hessian: Float[np.ndarray, "H H"] | None
) -> v2.AtomicResult:
    """The answer to an input.

    Args:
        given: the input.
        row: the result of its molecule.
        hessian: [3 A, 3 A] Hartree/Bohr^2, if it was asked for.
    """
    properties = _properties(row, hessian)
    of_driver: Fields = {
        "energy": row.energy,
        "gradient": properties.get("return_gradient"),
        "hessian": hessian,
    }
    driver = given.specification.driver.value
    asks = given.specification.protocols.wavefunction.value
    provenance = {
        "creator": "pyscf-ipu",
        "version": version(DISTRIBUTION),
        "routine": "pyscf_ipu.interop.qcschema.compute",
    }
    return v2.AtomicResult.model_validate(
        {
            "id": given.id,
            "input_data": given,
            "molecule": given.molecule,
            "properties": properties,
            "return_result": _analysis(row) if driver == "properties" else of_driver[driver],
            "wavefunction": wavefunction(row) if asks != "none" else None,
            "provenance": provenance,
        }
    )


def _properties(row: MoleculeResult, hessian: Float[np.ndarray, "H H"] | None) -> Fields:
    """What QCSchema has a name for, in atomic units."""
    assert isinstance(row.molecule, Molecule)
    assert row.settings is not None
    mol, terms, energy = row.molecule, row.energy_terms, float(row.energy)
    alpha, beta = mol.n_occupied(row.settings.basis)
    levels = np.asarray(row.mo_energy)
    named = {
        "calcinfo_natom": mol.n_atoms,
        "calcinfo_nalpha": alpha,
        "calcinfo_nbeta": beta,
        "calcinfo_nmo": levels.shape[-1],
        "calcinfo_nbasis": levels.shape[-1] + int(row.n_dropped),
        "nuclear_repulsion_energy": float(terms["nuclear_repulsion"]),
        "scf_one_electron_energy": float(terms["kinetic"] + terms["nuclear_attraction"]),
        "scf_two_electron_energy": float(terms["electron_repulsion"]),
        "scf_xc_energy": float(terms["exchange_correlation"]),
        "scf_dipole_moment": np.asarray(row.dipole),
        "scf_iterations": int(row.cycles),
        "scf_total_energy": energy,
        "return_energy": energy,
    }
    if row.dispersion is not None:
        named["scf_dispersion_correction_energy"] = float(row.dispersion)
    if row.forces is not None:
        named["scf_total_gradient"] = named["return_gradient"] = -np.asarray(row.forces)
    if hessian is not None:
        named["scf_total_hessian"] = named["return_hessian"] = hessian
    return named


def _analysis(row: MoleculeResult) -> Fields:
    """The answer of the driver "properties", in atomic units, by name."""
    named: Fields = {
        "dipole": np.asarray(row.dipole),
        "quadrupole": np.asarray(row.quadrupole),
        "mulliken_charges": np.asarray(row.mulliken_charges),
        "lowdin_charges": np.asarray(row.charges_lowdin),
        "mayer_indices": np.asarray(row.bond_orders),
    }
    if row.s_squared is not None:
        named |= {"s_squared": float(row.s_squared), "spin_populations": row.spin_populations}
    return named


def wavefunction(row: MoleculeResult) -> Fields:
    """WavefunctionProperties of a result that has orbitals, over spherical functions."""
    assert isinstance(row.molecule, Molecule)
    assert row.settings is not None
    assert row.mo_coeff is not None
    assert row.density_matrix is not None
    mol = row.molecule
    mole = row.settings.pyscf_mole(
        mol.numbers, mol.positions, mol.charge, unpaired=mol.multiplicity - 1
    )
    order, restricted = _order(mole), np.ndim(row.mo_energy) == 1
    coefficients, density = np.asarray(row.mo_coeff), np.asarray(row.density_matrix)
    levels = np.asarray(row.mo_energy)
    if restricted:
        coefficients, levels, density = coefficients[None], levels[None], density[None] / 2
    named: Fields = {"basis": _basis(mole, row.settings.basis), "restricted": restricted}
    occupied = mol.n_occupied(row.settings.basis)
    for spin, name in enumerate("a" if restricted else "ab"):
        filled = np.arange(levels.shape[-1]) < occupied[spin]
        values = {
            "orbitals": coefficients[spin][order],
            "density": density[spin][np.ix_(order, order)],
            "eigenvalues": levels[spin],
            "occupations": filled.astype(float),
        }
        for kind, value in values.items():
            named[f"scf_{kind}_{name}"] = value
            named[f"{kind}_{name}"] = f"scf_{kind}_{name}"
    return named


def _order(mole: gto.Mole) -> Int[np.ndarray, " N"]:
    """PySCF's AO of each of QCSchema's: its p functions are x, y, z, and here y, z, x."""
    order, first = [], 0
    for shell in range(mole.nbas):
        degree = mole.bas_angular(shell)
        inside = [1, 2, 0] if degree == 1 else range(2 * degree + 1)
        for _ in range(mole.bas_nctr(shell)):
            order += [first + place for place in inside]
            first += 2 * degree + 1
    return np.array(order)


def _basis(mole: gto.Mole, name: str) -> Fields:
    """A BasisSet; coefficients are those of normalised primitives."""
    centres: Fields = {}
    symbols = [mole.atom_pure_symbol(atom) for atom in range(mole.natm)]
    for atom, symbol in enumerate(symbols):
        if symbol in centres:
            continue
        shells = []
        for shell in mole.atom_shell_ids(atom):
            degree, exponents = mole.bas_angular(shell), mole.bas_exp(shell)
            for contraction in mole.bas_ctr_coeff(shell).T:
                shells.append(
                    {
                        "angular_momentum": [degree],
                        "harmonic_type": "spherical",
                        "exponents": exponents.tolist(),
                        "coefficients": [contraction.tolist()],
                    }
                )
        centres[symbol] = {
            "electron_shells": shells,
            "ecp_electrons": mole.atom_nelec_core(atom),
        }
    return {"name": name, "center_data": centres, "atom_map": symbols, "nbf": mole.nao}
