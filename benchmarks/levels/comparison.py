"""Levels of theory against PySCF: float64, without dispersion.

A task is one level.  PySCF's results are kept.  Workers are pinned, single-threaded processes, one
per core.
"""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.pool import Pool
from benchmarks.reference import CACHE, gradient, reference
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.xc.dispersion.correction import correction
from pyscf_ipu.xc.registry import functional

ENERGY_BOUND, ORBITAL_BOUND = 1e-7, 1e-6  # Hartree
FORCES_BOUND = 1e-6  # Hartree/Bohr


def add_options(parser: argparse.ArgumentParser, molecules: int) -> None:
    """The options of the scripts that compare levels."""
    parser.add_argument("--limit", type=int, default=molecules, help="molecules, at most")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    parser.add_argument("--forces", action="store_true", help="compare forces, too")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where references are kept")


def run(levels: Sequence[Settings], mols: list[Molecule], args: argparse.Namespace) -> int:
    """Compare all levels, print a table, write the figures; returns the exit status."""
    found: dict[int, list[dict[str, Any]]] = {}
    with Pool(args.workers) as pool:
        tasks = [(level, having_basis(level, mols), args.cache, args.forces) for level in levels]
        for i, rows in pool.each(compare, tasks):
            found[i] = rows
            print(line(summary(levels[i], rows)), flush=True)
    summaries = [summary(levels[i], found[i]) for i in sorted(found)]
    harness.table(summaries)
    missed = [line(one) for one in summaries if not one["reached"]]
    rows = [row for i in sorted(found) for row in found[i]]
    return harness.finish(args.out, {"summary": summaries, "rows": rows}, missed)


def having_basis(level: Settings, mols: list[Molecule]) -> list[Molecule]:
    """Those whose elements the basis set has."""

    def has(mol: Molecule) -> bool:
        with suppress(InvalidMolecule):
            return Solver(level).n_ao(mol.numbers) > 0
        return False

    return list(filter(has, mols))


def compare(
    level: Settings, mols: list[Molecule], cache: Path, forces: bool = False
) -> list[dict[str, Any]]:
    """In a worker: ours minus PySCF's, molecule by molecule, Hartree and Hartree/Bohr."""
    ours = rks(mols, solver=Solver(level), forces=forces)
    rows = []
    for i, mol in enumerate(mols):
        theirs = reference(mol, level, cache)
        energy = sum(float(values[i]) for values in ours.energy_terms.values())
        orbitals = np.asarray(ours.mo_energy[i]) - np.array(theirs["mo_energy"])
        rows.append(
            {
                "xc": level.xc,
                "basis": level.basis,
                "smiles": mol.smiles,
                "reference": theirs["energy"],
                "energy": energy - theirs["energy"],
                "orbital": float(np.abs(orbitals).max()),
                "converged": bool(ours.converged[i] and theirs["converged"]),
            }
        )
        if forces:
            added = correction(level.dispersion, mol.numbers, mol.positions, charge=mol.charge)
            alone = np.asarray(ours.forces[i]) - added.forces  # type: ignore[index]
            rows[-1]["forces"] = float(np.abs(alone + gradient(mol, level)).max())
    return rows


def summary(level: Settings, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest differences of a level, and whether both bounds are met."""
    energy = max(abs(row["energy"]) for row in rows)
    orbital = max(row["orbital"] for row in rows)
    converged = all(row["converged"] for row in rows)
    forces = {"forces": max(row["forces"] for row in rows)} if "forces" in rows[0] else {}
    within = energy <= ENERGY_BOUND and orbital <= ORBITAL_BOUND
    return {
        "xc": level.xc,
        "libxc": functional(level.xc).pyscf_name,
        "basis": level.basis,
        "molecules": len(rows),
        "energy": energy,
        "orbital": orbital,
        **forces,
        "converged": converged,
        "reached": converged and within and forces.get("forces", 0.0) <= FORCES_BOUND,
    }


def line(one: dict[str, Any]) -> str:
    """A summary in words."""
    return (
        f"{one['xc']:11} {one['basis']:7} {one['molecules']:3} molecules: energy "
        f"{one['energy']:.1e} Ha, orbital energies {one['orbital']:.1e} Ha"
        + (f", forces {one['forces']:.1e} Ha/Bohr" if "forces" in one else "")
        + (", all converged" * one["converged"])
    )
