"""Diffuse basis sets, whose AOs are nearly dependent: is a number that is called right right?

Six molecules in four sets against PySCF in float64, with its own limit for dependent AOs.  A row
that is called converged is wrong if its energy, gap or charges are further off than BOUNDS.
References are kept on disk.  For a quick look: float32 --molecules acetylene formamide
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.reference import CACHE, converged_field, kept
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.numerics.precision import ACCURACIES

MOLECULES = {
    "acetylene": "C#C",
    "formamide": "NC=O",
    "ethanol": "CCO",
    "acetate": "CC(=O)[O-]",
    "butadiene": "C=CC=C",
    "benzene": "c1ccccc1",
}
SETS = ("6-31+g*", "6-31++g**", "6-311++g**", "aug-cc-pvdz")
PRECISIONS = ("float32", "mixed", "float64")
BOUNDS = {"energy_mev": 3.0, "gap_mev": 1.0, "charge_e": 1e-3}
RIGHT = {"energy": ["energy_mev"], "orbitals": ["energy_mev", "gap_mev"], "properties": [*BOUNDS]}
"""What is judged, by `Settings.accuracy`."""
MEV = 1e3 * HARTREE_TO_EV


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "precisions", PRECISIONS)
    parser.add_argument("--molecules", nargs="*", choices=MOLECULES, default=list(MOLECULES))
    parser.add_argument("--accuracy", choices=ACCURACIES, default="properties")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    args = parser.parse_args()

    def level(basis: str, precision: str) -> Settings:
        accuracy = args.accuracy
        return Settings(basis=basis, precision=precision, grid_level=0, accuracy=accuracy)

    def judge(precision: str) -> tuple[Any, list[str]]:
        found = [
            row(name, level(basis, precision)) for name in args.molecules for basis in args.sets
        ]
        return _judged(found, args.accuracy)

    parts = {name: lambda name=name: judge(name) for name in PRECISIONS}
    return harness.run_parts(parts, args.precisions, args.out)


def row(name: str, level: Settings) -> dict[str, Any]:
    """Errors of one molecule, and what the engine says of it."""
    mol = Molecule.from_smiles(MOLECULES[name])
    known = reference(mol, level)
    seconds, found = harness.timed(lambda: rks(mol, solver=Solver(level)))
    frontier = np.asarray(known["mo_energy"])[mol.n_electrons // 2 - 1 :][:2]
    charges = np.abs(found.mulliken_charges - np.asarray(known["charges"]))
    made = {
        "molecule": name,
        "basis": level.basis,
        "AOs": known["n_ao"],
        "smallest": float(known["overlap_smallest"]),
        "found": float(found.overlap_smallest),
        "dropped": int(found.n_dropped),
        "status": found.status,
        "cycles": int(found.cycles),
        "energy_mev": MEV * float(found.energy - known["energy"]),
        "gap_mev": MEV * float(found.gap - (frontier[1] - frontier[0])),
        "charge_e": float(charges.max()),
        "seconds": seconds,
    }
    harness.table([made])
    return made


def reference(mol: Molecule, level: Settings) -> dict[str, Any]:
    """PySCF's energy and orbital energies (Hartree), charges (e), smallest eigenvalue of S."""
    return kept(CACHE.parent / "pyscf-diffuse", mol, level, lambda: _reference(mol, level))


def _reference(mol: Molecule, level: Settings) -> dict[str, Any]:
    field = converged_field(mol, level)
    assert field.converged
    overlap = field.get_ovlp()
    _, charges = field.mulliken_pop(verbose=0)
    return {
        "energy": float(field.e_tot),
        "mo_energy": np.asarray(field.mo_energy).tolist(),
        "charges": charges.tolist(),
        "n_ao": len(overlap),
        "overlap_smallest": float(np.linalg.eigvalsh(overlap)[0]),
    }


def _judged(rows: Sequence[dict[str, Any]], accuracy: str) -> tuple[dict[str, Any], list[str]]:
    bounds = {name: x for name, x in BOUNDS.items() if name in RIGHT[accuracy]}
    harness.table(rows)
    converged = [one for one in rows if one["status"] == "converged"]
    largest = {name: max((abs(one[name]) for one in converged), default=0.0) for name in bounds}
    print({"converged": len(converged), "of": len(rows), "largest errors": largest}, flush=True)
    missed = [
        f"{one['molecule']}/{one['basis']}: {name} {one[name]:.2g}"
        for one in converged
        for name, bound in bounds.items()
        if abs(one[name]) > bound
    ]
    return {"rows": list(rows), "largest errors of converged rows": largest}, missed


if __name__ == "__main__":
    raise SystemExit(main())
