"""Forces, optimised geometries and molecular dynamics, against PySCF and against ourselves.

sto-3g   against PySCF with grid_response=True, grid level 3; references are kept
6-31g*   the same in another basis
fd       against finite differences of our own energy
nve      drift of 1 ps of water
ethanol  a minimum, against PySCF + geomeTRIC (extra: bench)
time     seconds for an energy, for both, and PySCF's
rate     conformers per second with forces, as part of those without, at QM1B's level

All in one process.
"""

import functools
import sys
from typing import Any

import numpy as np

from benchmarks import harness, molecules
from benchmarks.reference import build, gradient, gradient_method
from pyscf_ipu import Molecule, Settings, Solver, enable_disk_cache, optimize, rks
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from qm1b.settings import PRESETS

LEVEL = 3
BOUNDS = {"float32": 1e-4, "float64": 1e-6}  # Hartree/Bohr
FD_BOUND = 1e-6
RATE_BOUND = 0.55
ROUNDS = 7
ENERGY_BOUND, RMSD_BOUND = 1e-4, 0.01  # Hartree, Angstrom
TWO_HEAVY = "CC C=C C#C CO C=O CN C=N C#N CF OO NN NO N=O C[NH3+]".split()
LARGER = "CCO CC(=O)N".split()
Figures = dict[str, Any]
"""With `reached`: whether every bound is met."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "parts", PARTS)
    parser.add_argument("--limit", type=int, default=10_000, help="molecules, or steps, at most")
    args = parser.parse_args()
    enable_disk_cache()

    def judged(name: str) -> tuple[Figures, list[str]]:
        found = PARTS[name](args.limit)
        return found, [] if found["reached"] else ["the bound printed above"]

    parts = {name: functools.partial(judged, name) for name in PARTS}
    return harness.run_parts(parts, args.parts, args.out)


def compare(basis: str, xcs: tuple[str, ...], limit: int) -> Figures:
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
        rows += [deviation(some, expected, basis, xc, precision) for precision in BOUNDS]
    return {"rows": rows, "reached": all(r["reached"] for r in rows)}


def deviation(
    mols: list[Molecule], expected: list[np.ndarray], basis: str, xc: str, precision: str
) -> Figures:
    """Deviations of our forces from PySCF's, at one level and in one precision."""
    solver = Solver(Settings(basis=basis, xc=xc, grid_level=LEVEL, precision=precision))
    found = rks(mols, solver=solver, forces=True).forces
    assert found is not None
    errors = np.concatenate([np.abs(f + g).ravel() for f, g in zip(found, expected, strict=True)])
    bound = BOUNDS[precision]
    row = {
        "basis": basis,
        "xc": xc,
        "precision": precision,
        "molecules": len(mols),
        "largest": float(errors.max()),
        "mean": float(errors.mean()),
        "net": float(max(np.abs(f.sum(0)).max() for f in found)),
        "bound": bound,
        "reached": bool(errors.max() <= bound),
    }
    print(
        f"{basis:7}{xc:7}{precision:9}{len(mols):3} molecules: largest {row['largest']:.1e}, "
        f"mean {row['mean']:.1e}, net force {row['net']:.1e} Ha/Bohr, bound {bound:.0e}",
        flush=True,
    )
    return row


def finite_differences(limit: int, step: float = 1e-3) -> Figures:
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
    print(f"largest deviation {worst:.1e} Ha/Bohr, bound {FD_BOUND:.0e}")
    return {"largest": worst, "reached": worst <= FD_BOUND}


def dynamics(limit: int) -> Figures:
    """1 ps of water at constant energy, 0.5 fs, float32 forces."""
    from ase import Atoms, units
    from ase.md.velocitydistribution import MaxwellBoltzmannDistribution, Stationary, ZeroRotation
    from ase.md.verlet import VelocityVerlet

    from pyscf_ipu.api.calculator import Calculator

    steps = min(2000, limit)
    atoms = Atoms("OH2", [[0, 0, 0.1173], [0, 0.7572, -0.4692], [0, -0.7572, -0.4692]])
    atoms.calc = Calculator(basis="sto-3g", xc="b3lyp", grid_level=1)
    MaxwellBoltzmannDistribution(atoms, temperature_K=300, rng=np.random.RandomState(0))
    Stationary(atoms)
    ZeroRotation(atoms)
    total: list[float] = []
    run = VelocityVerlet(atoms, timestep=0.5 * units.fs)
    run.attach(lambda: total.append(float(atoms.get_total_energy())))
    seconds, _ = harness.timed(run.run, steps)
    picoseconds = np.arange(len(total)) * 0.5e-3
    line = np.polyfit(picoseconds, total, 1)
    slope = float(line[0])
    wave = float(np.std(np.array(total) - np.polyval(line, picoseconds)))
    print(
        f"{steps} steps of 0.5 fs in {seconds:.0f} s; total energy drifts {1e3 * slope:+.3f} "
        f"meV/ps, fluctuates by {1e3 * wave:.3f} meV (rms), range {1e3 * np.ptp(total):.2f} meV"
    )
    return {"steps": steps, "drift_ev_per_ps": slope, "rms_ev": wave, "reached": True}


def ethanol(limit: int) -> Figures:
    """From RDKit's geometry, float32, against geomeTRIC on PySCF at the same level."""
    from pyscf.geomopt.geometric_solver import optimize as geometric

    del limit
    level = Settings(grid_level=LEVEL)
    mol = Molecule.from_smiles("CCO", seed=0)
    seconds, ours = harness.timed(lambda: optimize(mol, solver=Solver(level)))
    assert not isinstance(ours, list)
    method = gradient_method(build(mol, level))
    tight = {
        "convergence_energy": 1e-7,
        "convergence_grms": 3e-5,
        "convergence_gmax": 4.5e-5,
        "convergence_drms": 1.2e-4,
        "convergence_dmax": 1.8e-4,
    }
    pyscf_seconds, theirs = harness.timed(lambda: geometric(method, maxsteps=200, **tight))
    best = Molecule(mol.numbers, theirs.atom_coords())
    off = ours.energy - float(build(best, level).kernel())
    rmsd = aligned_rmsd(ours.molecule.positions, best.positions) * BOHR_TO_ANGSTROM
    reached = ours.converged and abs(off) <= ENERGY_BOUND and rmsd <= RMSD_BOUND
    print(
        f"{ours.message}; {seconds:.0f} s with compiling, PySCF + geomeTRIC {pyscf_seconds:.0f} s; "
        f"energy off by {off:.1e} Ha, RMSD {rmsd:.4f} Angstrom, bounds {ENERGY_BOUND:.0e} and "
        f"{RMSD_BOUND}"
    )
    return {
        "steps": len(ours.energies) - 1,
        "energy_off": off,
        "rmsd_angstrom": rmsd,
        "seconds": seconds,
        "pyscf_seconds": pyscf_seconds,
        "reached": reached,
    }


def aligned_rmsd(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean square distance [A, 3] after the best rotation (Kabsch)."""
    from scipy.spatial.transform import Rotation

    a, b = a - a.mean(0), b - b.mean(0)
    rotation = Rotation.align_vectors(b, a)[0]
    return float(np.sqrt(((rotation.apply(a) - b) ** 2).sum(1).mean()))


def timing(limit: int) -> Figures:
    """Seconds for one molecule when everything is compiled; one core, float32, grid 0."""
    found = []
    level = Settings(grid_level=0)
    for smiles in ["CCO", molecules.smiles_of(molecules.QM9)[0]][:limit]:
        mol, solver = molecules.embed([smiles])[0], Solver(level)
        rks(mol, solver=solver, forces=True)
        times = [
            min(harness.timed(lambda: rks(mol, solver=solver, forces=forces))[0] for _ in range(5))  # noqa: B023
            for forces in (False, True)
        ]
        field = build(mol, level)
        times.append(harness.timed(field.kernel)[0])
        times.append(harness.timed(gradient_method(field).kernel)[0])
        ours = "energy {:.3f} s, with forces {:.3f} s".format(*times[:2])
        theirs = "energy {:.2f} s, gradient {:.2f} s".format(*times[2:])
        print(f"{smiles}: {ours}; PySCF {theirs}", flush=True)
        found.append([smiles, *times])
    return {"rows": found, "reached": True}


def rate(limit: int) -> Figures:
    """Batches of QM9 molecules of one shape, without and with forces in turn; one core."""
    solver = Solver(PRESETS["qm1b"])
    groups = harness.grouped(molecules.embed(molecules.smiles_of(molecules.QM9, 60)), solver.shape)
    shape = max(groups, key=lambda one: len(groups[one]))
    batch = groups[shape][: min(solver.batch_size(shape), limit)]
    sides = {
        name: lambda forces=forces: harness.timed(lambda: solver.run(shape, batch, forces=forces))
        for name, forces in (("without", False), ("with forces", True))
    }
    found = harness.in_turn(sides, ROUNDS + 1)  # the first one compiles
    plain, both = (np.array([t for t, _ in found[side][1:]]) / len(batch) for side in sides)
    part = float(np.median(plain / both))
    print(
        f"{shape.label}, {len(batch)} conformers: {1e3 * np.median(plain):.1f} ms, with forces "
        f"{1e3 * np.median(both):.1f} ms: {part:.2f} of the rate, bound {RATE_BOUND}"
    )
    return {"part": part, "reached": part >= RATE_BOUND}


PARTS = {
    "sto-3g": lambda limit: compare("sto-3g", ("b3lyp", "pbe0", "hf"), limit),
    "6-31g*": lambda limit: compare("6-31g*", ("b3lyp",), min(limit, 6)),
    "fd": finite_differences,
    "nve": dynamics,
    "ethanol": ethanol,
    "time": timing,
    "rate": rate,
}


if __name__ == "__main__":
    sys.exit(main())
