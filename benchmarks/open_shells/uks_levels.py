"""Every functional in open shells against PySCF's UKS: float64, grid level 0, without dispersion.

PySCF starts from our density, so both are in one state; where it is not PySCF's own, the table says
whether ours is lower or higher.  Levels of a spin without electrons are left out.
exact      STO-3G and 6-31G*, exact electron repulsion
ri         density fitting, 6-31G* and def2-SVP
cores      core potentials: HI+, I, TeH, Rb, AgO in def2-SVP
6d7f       cartesian d, spherical f: 6-31G(2df,p)
For a quick look: exact --xc b3lyp --basis sto-3g --kinds atoms
"""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.levels.comparison import ENERGY_BOUND, FORCES_BOUND, ORBITAL_BOUND
from benchmarks.open_shells import pyscf_uks, species
from benchmarks.open_shells.species import Named
from benchmarks.pool import Pool
from pyscf_ipu import Molecule, Settings, Solver, uks
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.xc.dispersion.correction import correction
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS, OWN_BASIS

KINDS = {
    "atoms": species.atoms,
    "diatomics": species.diatomics,
    "polyatomic": species.polyatomic,
    "heavy": species.heavy,
}
BASES = {
    "exact": ("sto-3g", "6-31g*"),
    "ri": ("6-31g*", "def2-svp"),
    "cores": ("def2-svp",),
    "6d7f": ("6-31g(2df,p)",),
}
LIGHT = ("atoms", "diatomics", "polyatomic")
SPIN_BOUND, OTHER_STATE_HARTREE = 1e-5, 1e-5


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "parts", BASES)
    parser.add_argument("--xc", nargs="*", choices=FUNCTIONALS, default=FUNCTIONALS)
    parser.add_argument("--basis", nargs="*", help="default: those of the part")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, help="default: those of the part")
    parser.add_argument("--only", nargs="*", help="names of species; default: all")
    parser.add_argument("--no-forces", action="store_true", help="leave out forces")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    args = parser.parse_args()
    return harness.run_parts(
        {name: partial(part, name, args) for name in BASES}, args.parts, args.out
    )


def part(name: str, args: argparse.Namespace) -> tuple[Any, list[str]]:
    """The levels of a part, the figures of each, and those that miss a bound."""
    kinds = args.kinds or (("heavy",) if name == "cores" else LIGHT)
    chosen = [one for kind in kinds for one in KINDS[kind]()]
    chosen = [one for one in chosen if not args.only or one[0] in args.only]
    levels = list(_levels(name, args))
    rows: list[dict[str, Any]] = []
    summaries = []
    with Pool(args.workers) as pool:
        tasks = [(level, species.computable(chosen, level), not args.no_forces) for level in levels]
        for i, found in pool.each(compare, tasks):
            summaries.append(summary(levels[i], found))
            rows += found
            harness.table([summaries[-1]])
            harness.table(row for row in found if not row["reached"] or row["state"] != "same")
    missed = [f"{one['xc']}/{one['basis']}" for one in summaries if not one["reached"]]
    return {"summary": summaries, "rows": rows}, missed


def _levels(name: str, args: argparse.Namespace) -> Iterable[Settings]:
    """The levels of a part, without dispersion."""
    exact = Settings(precision="float64", grid_level=0, nlc_grid=0)
    form = {"ri": {"jk": "ri"}, "6d7f": {"cart": "6d7f"}}.get(name, {})
    for basis in args.basis or BASES[name]:
        for xc in args.xc:
            if xc not in OWN_BASIS:
                yield replace(exact, xc=xc, basis=basis, **form)
    if name == "exact":
        for xc in set(args.xc) & set(OWN_BASIS):
            yield Settings(xc=xc, precision="float64", grid_level=0)


def compare(level: Settings, chosen: list[Named], forces: bool) -> list[dict[str, Any]]:
    """In a worker: ours minus PySCF's, species by species, those of more atoms with forces."""
    solver, rows = Solver(level), []
    for name, mol in chosen:
        with_forces = forces and mol.n_atoms > 1
        try:
            ours = uks(mol, solver=solver, orbitals=True, forces=with_forces)
            row = judged(level, mol, ours)
        except Exception as error:  # a row, so that the others are compared
            row = {"state": "failed", "reached": False, "error": repr(error)[:200]}
        rows.append({"species": name, "xc": level.xc, "basis": level.basis} | row)
    return rows


def judged(level: Settings, mol: Molecule, ours: Any) -> dict[str, Any]:
    """A row of one species: differences in Hartree, Hartree/Bohr."""
    theirs = pyscf_uks.from_density(mol, level, ours.density_matrix)
    own = pyscf_uks.from_own_guess(mol, level)
    energy = sum(float(value) for value in ours.energy_terms.values())
    row = {
        "energy": energy - float(theirs.e_tot),
        "level": _levels_apart(mol.n_occupied(level.basis), ours.mo_energy, theirs.mo_energy),
        "s_squared": float(ours.s_squared) - float(theirs.spin_square()[0]),
        "above_own_mev": 1e3 * HARTREE_TO_EV * (energy - own["energy"]),
        "converged": bool(ours.converged and theirs.converged),
        "ours": bool(ours.converged),
        "theirs": bool(own["converged"]),
    }
    row["state"] = _state(energy - own["energy"])
    if ours.forces is not None:
        row["forces"] = forces_apart(level, mol, np.asarray(ours.forces), theirs=theirs)
    row["reached"] = row["converged"] and within(row)
    return row


def forces_apart(level: Settings, mol: Molecule, forces: np.ndarray, theirs: Any) -> float:
    """The largest difference of forces, with core potentials along one direction."""
    added = correction(level.dispersion, mol.numbers, mol.positions, charge=mol.charge)
    alone = forces - added.forces
    if not theirs.mol.has_ecp():
        return float(np.abs(alone - pyscf_uks.forces_of(theirs)).max())
    direction = np.random.default_rng(7).normal(size=mol.positions.shape)
    direction /= np.linalg.norm(direction)
    slope = pyscf_uks.slope(mol, level, theirs, direction=direction)
    return abs(float((alone * direction).sum()) + slope)


def within(row: dict[str, Any]) -> bool:
    """Whether a row meets every bound."""
    return (
        abs(row["energy"]) <= ENERGY_BOUND
        and row["level"] <= ORBITAL_BOUND
        and abs(row["s_squared"]) <= SPIN_BOUND
        and row.get("forces", 0.0) <= FORCES_BOUND
    )


def _levels_apart(occupied: tuple[int, int], ours: np.ndarray, theirs: Any) -> float:
    """The largest difference of orbital energies, in Hartree, of spins that have electrons."""
    apart = np.abs(np.asarray(ours) - np.asarray(theirs)).max(axis=1)
    return float(max(a for a, n in zip(apart, occupied, strict=True) if n > 0))


def _state(above: float) -> str:
    """Whether our state has PySCF's energy, from its own guess."""
    if abs(above) <= OTHER_STATE_HARTREE:
        return "same"
    return "lower" if above < 0 else "higher"


def summary(level: Settings, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The largest differences of a level, over the rows that both have converged."""
    good = [row for row in rows if row.get("converged")]

    def largest(key: str) -> float:
        return max((abs(row[key]) for row in good if key in row), default=float("nan"))

    return {
        "xc": level.xc,
        "basis": level.basis,
        "species": len(rows),
        "both": len(good),
        **{key: largest(key) for key in ("energy", "level", "s_squared", "forces")},
        **{key: sum(row["state"] == key for row in good) for key in ("same", "lower", "higher")},
        "reached": all(row["reached"] for row in rows),
    }


if __name__ == "__main__":
    sys.exit(main())
