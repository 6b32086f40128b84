"""Forces, optimised geometries and molecular dynamics, against PySCF and against ourselves.

    python benchmarks/forces.py                every part (references are kept)
    python benchmarks/forces.py sto-3g 6-31g*  against PySCF with grid_response=True, grid level 3
    python benchmarks/forces.py fd             against finite differences of our own energy
    python benchmarks/forces.py nve            drift of 1 ps of water
    python benchmarks/forces.py ethanol        a minimum, against PySCF + geomeTRIC (extra: bench)
    python benchmarks/forces.py time           seconds for an energy, for both, and PySCF's

Prints tables, writes JSON, and ends with status 1 if a bound is missed.  In one process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import molecules
import numpy as np
from pool import SINGLE
from reference import CACHE, CONV_TOL, _key, build

from pyscf_ipu import Molecule, Settings, Solver, enable_disk_cache, rks
from pyscf_ipu.units import BOHR_TO_ANGSTROM

LEVEL = 3
BOUNDS = {"float32": 1e-4, "float64": 1e-6}  # Hartree/Bohr
FD_BOUND = 1e-6
ENERGY_BOUND, RMSD_BOUND = 1e-4, 0.01  # Hartree, Angstrom
TWO_HEAVY = "CC C=C C#C CO C=O CN C=N C#N CF OO NN NO N=O C[NH3+]".split()
LARGER = "CCO CC(=O)N".split()


def compare(basis: str, xcs: tuple[str, ...], limit: int) -> dict[str, Any]:
    """Largest and mean deviation of forces from PySCF, per functional and precision."""
    mols = molecules.embed([*TWO_HEAVY, *LARGER][:limit])
    if basis == "sto-3g":
        by_size = molecules.smiles_of(molecules.GDB)[:4] + molecules.smiles_of(molecules.QM9)[:1]
        mols += molecules.embed(by_size[:limit])
    rows = []
    for xc in xcs:
        some = mols if xc == "b3lyp" else mols[: len(TWO_HEAVY)]
        level = Settings(basis=basis, xc=xc, grid_level=LEVEL)
        expected = [gradient(mol, level) for mol in some]
        for precision, bound in BOUNDS.items():
            solver = Solver(Settings(basis=basis, xc=xc, grid_level=LEVEL, precision=precision))
            found = rks(some, solver=solver, forces=True)
            assert found.forces is not None
            off = [np.abs(f + g) for f, g in zip(found.forces, expected, strict=True)]
            errors = np.concatenate([x.ravel() for x in off])
            row = {
                "basis": basis, "xc": xc, "precision": precision, "molecules": len(some),
                "largest": float(errors.max()), "mean": float(errors.mean()),
                "net": float(max(np.abs(f.sum(0)).max() for f in found.forces)),
                "bound": bound, "reached": bool(errors.max() <= bound),
            }  # fmt: skip
            print(
                f"{basis:7}{xc:7}{precision:9}{len(some):3} molecules: largest {row['largest']:.1e}"
                f", mean {row['mean']:.1e}, net force {row['net']:.1e} Ha/Bohr, bound {bound:.0e}: "
                f"{'reached' if row['reached'] else 'MISSED'}",
                flush=True,
            )
            rows.append(row)
    return {"rows": rows, "reached": all(r["reached"] for r in rows)}


def gradient(mol: Molecule, level: Settings) -> np.ndarray:
    """PySCF's gradient [A, 3] with its grid response, from disk if it is there."""
    path = CACHE.parent / "pyscf-gradients" / f"{_key(mol, level)}.json"
    if not path.exists():
        field = build(mol, level)
        field.conv_tol, field.conv_tol_grad = 0.1 * CONV_TOL, 1e-8
        field.kernel()
        method = field.nuc_grad_method()
        method.verbose, method.grid_response = 0, True
        found = method.kernel().tolist()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(found))
        part.replace(path)
    return np.array(json.loads(path.read_text()))


def finite_differences(limit: int, step: float = 1e-3) -> dict[str, Any]:
    """Every component of the forces on two molecules, float64, central differences."""
    solver = Solver(Settings(precision="float64", grid_level=LEVEL))
    worst = 0.0
    for mol in molecules.embed(["CO", "C=N"][:limit]):
        steps = step * np.eye(mol.positions.size).reshape(-1, *mol.positions.shape)
        moved = [Molecule(mol.numbers, mol.positions + s * d) for d in steps for s in (1, -1)]
        energy = rks(moved, solver=solver).energy
        slope = ((energy[::2] - energy[1::2]) / (2 * step)).reshape(-1, 3)
        force = rks(mol, solver=solver, forces=True).forces
        worst = max(worst, float(np.abs(force + slope).max()))
    print(f"fd: largest deviation {worst:.1e} Ha/Bohr, bound {FD_BOUND:.0e}")
    return {"largest": worst, "reached": worst <= FD_BOUND}


def dynamics(limit: int) -> dict[str, Any]:
    """1 ps of water at constant energy, 0.5 fs, float32 forces."""
    from ase import Atoms, units
    from ase.md.velocitydistribution import MaxwellBoltzmannDistribution, Stationary, ZeroRotation
    from ase.md.verlet import VelocityVerlet

    from pyscf_ipu.ase_calculator import Calculator

    steps = min(2000, limit)
    atoms = Atoms("OH2", [[0, 0, 0.1173], [0, 0.7572, -0.4692], [0, -0.7572, -0.4692]])
    atoms.calc = Calculator(basis="sto-3g", xc="b3lyp", grid_level=1)
    MaxwellBoltzmannDistribution(atoms, temperature_K=300, rng=np.random.RandomState(0))
    Stationary(atoms)
    ZeroRotation(atoms)
    total: list[float] = []
    run = VelocityVerlet(atoms, timestep=0.5 * units.fs)
    run.attach(lambda: total.append(float(atoms.get_total_energy())))
    start = time.perf_counter()
    run.run(steps)
    seconds = time.perf_counter() - start
    picoseconds = np.arange(len(total)) * 0.5e-3
    slope = float(np.polyfit(picoseconds, total, 1)[0])
    wave = float(
        np.std(np.array(total) - np.polyval(np.polyfit(picoseconds, total, 1), picoseconds))
    )
    print(
        f"nve: {steps} steps of 0.5 fs in {seconds:.0f} s; total energy drifts {1e3 * slope:+.3f} "
        f"meV/ps, fluctuates by {1e3 * wave:.3f} meV (rms), range {1e3 * np.ptp(total):.2f} meV"
    )
    return {"steps": steps, "drift_ev_per_ps": slope, "rms_ev": wave, "reached": True}


def ethanol(limit: int) -> dict[str, Any]:
    """From RDKit's geometry, float32, against geomeTRIC on PySCF at the same level."""
    from pyscf.geomopt.geometric_solver import optimize as geometric

    from pyscf_ipu import optimize

    del limit
    level = Settings(grid_level=LEVEL)
    mol = Molecule.from_smiles("CCO", seed=0)
    start = time.perf_counter()
    ours = optimize(mol, solver=Solver(level))
    seconds = time.perf_counter() - start
    field = build(mol, level)
    field.verbose = 0
    method = field.nuc_grad_method()
    method.grid_response = True
    start = time.perf_counter()
    tight = {"convergence_energy": 1e-7, "convergence_grms": 3e-5, "convergence_gmax": 4.5e-5,
             "convergence_drms": 1.2e-4, "convergence_dmax": 1.8e-4}  # fmt: skip
    theirs = geometric(method, maxsteps=200, **tight)
    pyscf_seconds = time.perf_counter() - start
    best = Molecule(mol.numbers, theirs.atom_coords())
    field = build(best, level)
    energy = float(field.kernel())
    rmsd = aligned_rmsd(ours.molecule.positions, best.positions) * BOHR_TO_ANGSTROM
    off = ours.energy - energy
    reached = ours.converged and abs(off) <= ENERGY_BOUND and rmsd <= RMSD_BOUND
    print(
        f"ethanol: {ours.message}; {seconds:.0f} s with compiling, PySCF + geomeTRIC "
        f"{pyscf_seconds:.0f} s; energy off by {off:.1e} Ha, RMSD {rmsd:.4f} Angstrom: "
        f"{'reached' if reached else 'MISSED'}"
    )
    return {
        "steps": len(ours.energies) - 1, "energy_off": off, "rmsd_angstrom": rmsd,
        "seconds": seconds, "pyscf_seconds": pyscf_seconds, "reached": reached,
    }  # fmt: skip


def aligned_rmsd(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square distance [A, 3] after the best rotation (Kabsch)."""
    from scipy.spatial.transform import Rotation

    a, b = a - a.mean(0), b - b.mean(0)
    rotation, _ = Rotation.align_vectors(b, a)
    return float(np.sqrt(((rotation.apply(a) - b) ** 2).sum(1).mean()))


def timing(limit: int) -> dict[str, Any]:
    """Seconds for one molecule when everything is compiled; one core."""
    found = []
    nine = molecules.smiles_of(molecules.QM9)[0]
    for smiles in ["CCO", nine][:limit]:
        mol = molecules.embed([smiles])[0]
        level = Settings()
        solver = Solver(level)
        rks(mol, solver=solver, forces=True)
        energy = min(seconds_of(lambda: rks(mol, solver=solver)) for _ in range(5))  # noqa: B023
        both = min(
            seconds_of(lambda: rks(mol, solver=solver, forces=True))  # noqa: B023
            for _ in range(5)
        )
        field = build(mol, level)
        pyscf_energy = seconds_of(field.kernel)
        method = field.nuc_grad_method()
        method.verbose, method.grid_response = 0, True
        pyscf_gradient = seconds_of(method.kernel)
        print(
            f"{smiles}: energy {energy:.3f} s, with forces {both:.3f} s; PySCF energy "
            f"{pyscf_energy:.2f} s, gradient {pyscf_gradient:.2f} s (one core, float32, grid 0)",
            flush=True,
        )
        found.append([smiles, energy, both, pyscf_energy, pyscf_gradient])
    return {"rows": found, "reached": True}


def seconds_of(function: Any) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


PARTS = {
    "sto-3g": lambda limit: compare("sto-3g", ("b3lyp", "pbe0", "hf"), limit),
    "6-31g*": lambda limit: compare("6-31g*", ("b3lyp",), min(limit, 6)),
    "fd": finite_differences,
    "nve": dynamics,
    "ethanol": ethanol,
    "time": timing,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--limit", type=int, default=10_000, help="molecules, or steps, at most")
    default = Path(__file__).parent / "results" / "forces.json"
    parser.add_argument("--out", type=Path, default=default, help="JSON with the figures")
    args = parser.parse_args()
    unknown = sorted(set(args.parts) - set(PARTS))
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    enable_disk_cache()
    found = json.loads(args.out.read_text()) if args.out.exists() else {}
    missed = []
    for name in args.parts or PARTS:
        found[name] = PARTS[name](args.limit)
        missed += [] if found[name]["reached"] else [name]
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(found, indent=1))
    print(f"figures: {args.out}" + (f"; missed: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    if "OMP_NUM_THREADS" not in os.environ:  # counted when NumPy and XLA are imported
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **SINGLE})
    sys.exit(main())
