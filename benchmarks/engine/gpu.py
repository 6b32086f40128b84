"""Batches of different molecules on a GPU: equal to the CPU's results, and how many a second.

First on a CPU: `python -m benchmarks.engine.gpu reference`, which takes RDKit.  Then on the GPU the
other parts.  The molecules have nine heavy atoms and one shape, the largest group of the bundled
file, a conformer each for as many seeds as it takes.  Rates are those of `Solver.run`, from
molecules to results, with the programs compiled; and of the device alone.
"""

import collections
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import harness, molecules
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.results.result import MoleculeResult

LEVEL = {"xc": "b3lyp5", "grid_level": 0}
WIDER = {"xc": "b3lyp5", "basis": "6-31g*", "grid_level": 1}
COUNT, BATCH, FEW = 1024, 512, 64
"""Molecules at LEVEL; of one call; at WIDER."""
FILE = harness.HERE / ".cache" / "gpu_reference.npz"
Part = tuple[Any, list[str]]


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--reference", type=Path, default=FILE, help="what `reference` writes")
    parts: dict[str, Callable[[Path], Part]] = {
        "reference": write_reference,
        "equality": equality,
        "levels": levels,
        "rates": rates,
        "kernels": kernels,
    }
    harness.add_names(parser, "parts", parts)
    args = parser.parse_args()
    names = args.parts or [name for name in parts if name != "reference"]
    bound = {name: (lambda name=name: parts[name](args.reference)) for name in parts}
    return harness.run_parts(bound, names, args.out)


def write_reference(path: Path) -> Part:
    """Molecules, their energies and gaps in float64 and float32 on a CPU."""
    mols = chosen()
    found: dict[str, np.ndarray] = {
        "numbers": np.stack([np.pad(m.numbers, (0, 32 - m.n_atoms)) for m in mols]),
        "positions": np.stack([np.pad(m.positions, ((0, 32 - m.n_atoms), (0, 0))) for m in mols]),
    }
    for precision in ("float64", "float32"):
        found |= _results(precision, rks(mols, precision=precision, **LEVEL))
    found |= _results("6-31g*", rks(mols[:FEW], precision="float64", **WIDER))
    forces = rks(mols[:FEW], precision="float64", forces=True, **LEVEL).forces or ()
    found["forces"] = np.stack([np.pad(f, ((0, 32 - len(f)), (0, 0))) for f in forces])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **found)  # type: ignore[arg-type]
    errors = 1e3 * HARTREE_TO_EV * (found["float32 energy"] - found["float64 energy"])
    row = {"molecules": len(mols), **_spread(errors)}
    harness.table([row])
    return row, []


def chosen() -> list[Molecule]:
    """COUNT conformers of the molecules with the most frequent shape."""
    solver, groups = Solver(Settings(**LEVEL)), collections.defaultdict(list)
    for mol in molecules.embed(molecules.smiles_of(molecules.QM9)):
        groups[solver.shape(mol)].append(mol.smiles)
    texts = max(groups.values(), key=len)
    found: list[Molecule] = []
    for seed in range(-(-COUNT // len(texts))):
        found += molecules.embed(texts, seed)
    return found[:COUNT]


def _results(name: str, result: Any) -> dict[str, np.ndarray]:
    kept = {key: np.asarray(getattr(result, key)) for key in ("energy", "gap", "converged")}
    return {f"{name} {key}": values for key, values in kept.items()}


def equality(path: Path) -> Part:
    """Batches of 1, 64 and 512 against the CPU."""
    mols, known = read(path)
    rows = []
    for precision, sizes in (("float32", (1, FEW, BATCH)), ("mixed", (FEW,)), ("float64", (FEW,))):
        solver = Solver(Settings(precision=precision, **LEVEL))
        for size in sizes:
            rows.append(_compared(solver, mols[:size], known, "float64"))
            harness.table(rows[-1:])
    rows.append(_compared_forces(mols[:FEW], known))
    harness.table(rows[-1:])
    limits = {"float32": 1.5, "mixed": 0.01, "float64": 1e-4}
    missed = [
        f"{row['precision']}, {row['molecules']}: {row['energy_mae_mev']:.3g} meV"
        for row in rows[:-1]
        if row["energy_mae_mev"] > limits[row["precision"]]
    ]
    return rows, missed


def levels(path: Path) -> Part:
    """Polarised basis sets, whose d shells have no kernel of their own."""
    mols, known = read(path)
    row = _compared(Solver(Settings(**WIDER)), mols[: known["6-31g* energy"].size], known, "6-31g*")
    harness.table([row])
    return [row], []


def _compared(
    solver: Solver, mols: list[Molecule], known: dict[str, np.ndarray], level: str
) -> dict[str, Any]:
    start = time.perf_counter()
    shape = solver.shape(mols[0])
    solver.compile(shape, count=min(len(mols), solver.batch_size(shape)))
    compiled = time.perf_counter() - start
    done, seconds = timed(solver, mols)
    ok = known[f"{level} converged"][: len(mols)] & np.array([one.converged for one in done])
    mev = 1e3 * HARTREE_TO_EV

    def errors(key: str) -> np.ndarray:
        ours = np.array([getattr(one, key) for one in done])
        return (mev * (ours - known[f"{level} {key}"][: len(mols)]))[ok]

    energy, gap = errors("energy"), errors("gap")
    return {
        "precision": solver.settings.precision,
        "basis": solver.settings.basis,
        "molecules": len(mols),
        "converged": int(ok.sum()),
        "compile_s": compiled,
        "per_second": len(mols) / seconds,
        **_spread(energy),
        "gap_mae_mev": float(np.abs(gap).mean()),
    }


def _spread(errors_mev: np.ndarray) -> dict[str, float]:
    return {
        "energy_mae_mev": float(np.abs(errors_mev).mean()),
        "bias_mev": float(errors_mev.mean()),
        "max_mev": float(np.abs(errors_mev).max()),
    }


def _compared_forces(mols: list[Molecule], known: dict[str, np.ndarray]) -> dict[str, Any]:
    solver = Solver(Settings(**LEVEL))
    done, seconds = timed(solver, mols, forces=True)
    errors = [
        np.abs(np.asarray(one.forces) - f[: mol.n_atoms]).max()
        for one, f, mol in zip(done, known["forces"], mols, strict=True)
    ]
    return {
        "forces of": len(mols),
        "per_second": len(mols) / seconds,
        "largest_error_hartree_per_bohr": float(max(errors)),
    }


def timed(
    solver: Solver, mols: list[Molecule], forces: bool = False
) -> tuple[list[MoleculeResult], float]:
    """Results, and the median of three times."""
    shape = solver.shape(mols[0])
    size = solver.batch_size(shape)

    def run() -> list[MoleculeResult]:
        calls = [mols[i : i + size] for i in range(0, len(mols), size)]
        return [one for call in calls for one in solver.run(shape, call, forces=forces)]

    done = run()
    return done, median(harness.timed(run)[0] for _ in range(3))


def rates(path: Path) -> Part:
    """Conformers a second by size of the batch."""
    mols, _ = read(path)
    solver, rows = Solver(Settings(**LEVEL)), []
    for size in (1, FEW, BATCH):
        done, seconds = timed(solver, mols[:size])
        cycles = [one.cycles for one in done]
        rows.append(
            {
                "batch": size,
                "ms": 1e3 * seconds,
                "per_second": size / seconds,
                "mean_cycles": float(np.mean(cycles)),
                "most_cycles": int(max(cycles)),
            }
        )
    harness.table(rows)
    whole = median(harness.timed(lambda: rks(mols, solver=solver))[0] for _ in range(3))
    print(f"rks of {len(mols)} molecules: {len(mols) / whole:.0f} a second")
    return {"calls": rows, "rks_per_second": len(mols) / whole}, []


def kernels(path: Path) -> Part:
    """Where the time of a full batch goes, from the device's own clock."""
    import jax
    from jax.profiler import ProfileData

    mols = read(path)[0][:BATCH]
    solver = Solver(Settings(**LEVEL))
    shape = solver.shape(mols[0])
    solver.run(shape, mols)
    spent: collections.Counter[str] = collections.Counter()
    calls: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            solver.run(shape, mols)
        for file in Path(folder).rglob("*.xplane.pb"):
            planes = [p for p in ProfileData.from_file(os.fspath(file)).planes if "GPU" in p.name]
            lines = [line for p in planes for line in p.lines if line.name.startswith("Stream")]
            for event in (event for line in lines for event in line.events):
                spent[event.name] += event.duration_ns
                calls[event.name] += 1
    total = sum(spent.values()) / 1e6
    rows = [
        {"kernel": name[:60], "ms": ns / 1e6, "calls": calls[name], "share": ns / 1e6 / total}
        for name, ns in spent.most_common(20)
    ]
    print(f"device busy {total:.1f} ms")
    harness.table(rows)
    return {"busy_ms": total, "kernels": rows}, []


def read(path: Path) -> tuple[list[Molecule], dict[str, np.ndarray]]:
    """Molecules and what is known of them."""
    import jax

    if jax.default_backend() == "cpu":
        raise SystemExit("JAX finds no GPU here: only the part `reference` runs on a CPU")
    if not path.exists():
        raise SystemExit(f"{path} is not there: run `python -m benchmarks.engine.gpu reference`")
    known = dict(np.load(path))
    both = zip(known.pop("numbers"), known.pop("positions"), strict=True)
    return [Molecule(z[z > 0], r[z > 0]) for z, r in both], known


if __name__ == "__main__":
    raise SystemExit(main())
