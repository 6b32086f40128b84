"""How far energies, gaps, orbital energies and dipoles are from PySCF in float64 on the same grid.

functionals  float64, STO-3G: every functional without dispersion of its own
bases        float64: the other basis sets
sto-3g       float32 and mixed on 220 molecules of 5 to 9 heavy atoms
6-31g*       float32 with d functions

All of them take hours; --limit 10 gives a first impression.  PySCF's results are kept.  PySCF and
the engine both use one pinned, single-threaded process per core.
"""

import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness, molecules
from benchmarks.pool import Pool
from benchmarks.reference import CACHE, reference
from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.shapes.shape import count_ao
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS

MEV = 1e3 * HARTREE_TO_EV
OTHER_STATE = 10.0  # meV: an energy further off belongs to another SCF solution
CONVERGED = 99.5  # percent, to PySCF's state
BASES = ("6-31g", "6-31g*", "def2-svp", "cc-pvdz")

# Bounds by figure of `summarise`, in meV.
EXACT = {"energy_max": 1e-7 * MEV, "orbital_max": 1e-6 * MEV}
SINGLE = {"energy_mae": 1.0, "energy_max": 5.0, "gap_mae": 0.1}
MIXED = {"energy_mae": 0.01}
SINGLE_D = {"energy_mae": 3.0}


@dataclass(frozen=True)
class Case:
    """Molecules at a level of theory."""

    name: str
    settings: Settings
    mols: list[Molecule]
    bounds: dict[str, float]


def functionals(limit: int) -> list[Case]:
    """float64, STO-3G; cations and chlorine compounds among the molecules."""
    mols = molecules.embed(molecules.SMALL[:limit])
    names = [xc for xc in FUNCTIONALS if functional(xc).dispersion is None]
    levels = [Settings(xc=xc, precision="float64", grid_level=0) for xc in names]
    return [Case("functionals", level, mols, EXACT) for level in levels]


def bases(limit: int) -> list[Case]:
    """float64, the other basis sets with Hartree-Fock and B3LYP, one of them also cartesian."""
    few = molecules.embed(molecules.FEW[:limit])
    more = few + molecules.embed(molecules.CHLORINE[:limit])
    levels = [(basis, xc, mols) for basis in BASES for xc, mols in (("hf", few), ("b3lyp", more))]
    cases = [
        Case("bases", Settings(basis=basis, xc=xc, precision="float64", grid_level=0), mols, EXACT)
        for basis, xc, mols in levels
    ]
    cartesian = Settings(basis="6-31g*", xc="b3lyp", precision="float64", cart=True, grid_level=0)
    return [*cases, Case("bases", cartesian, few, EXACT)]


def sto_3g(limit: int) -> list[Case]:
    """float32 and mixed on 220 molecules of 5 to 9 heavy atoms."""
    mols = molecules.mixed(limit)
    bounds = {"float32": SINGLE, "mixed": MIXED}
    return [
        Case("sto-3g", Settings(precision=name, grid_level=0), mols, bounds[name])
        for name in bounds
    ]


def pople_d(limit: int) -> list[Case]:
    """float32 with d shells, on 24 molecules of 5 and 6 heavy atoms."""
    five_and_six = [s for i, s in enumerate(molecules.smiles_of(molecules.GDB)) if i % 4 < 2]
    mols = molecules.embed(five_and_six[: min(limit, 24)])
    return [Case("6-31g*", Settings(basis="6-31g*", grid_level=0), mols, SINGLE_D)]


SETS = {"functionals": functionals, "bases": bases, "sto-3g": sto_3g, "6-31g*": pople_d}


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "sets", SETS)
    parser.add_argument("--precision", nargs="*", help="only these: float64 float32 mixed")
    parser.add_argument("--xc", nargs="*", help="only these functionals")
    parser.add_argument("--limit", type=int, default=10_000, help="molecules per set, at most")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where references are kept")
    args = parser.parse_args()
    cases = [
        case
        for name in args.sets or SETS
        for case in SETS[name](args.limit)
        if not args.precision or case.settings.precision in args.precision
        if not args.xc or case.settings.xc in args.xc
    ]
    if not cases:
        raise SystemExit("no set is left after --precision and --xc: leave one of them out")
    summaries, rows = [], []
    with Pool(args.workers) as pool:
        references = _references(pool, cases, args.cache)
        for case, found in _results(pool, cases):
            compared = compare(case, found, references)
            summaries.append(summarise(case, compared))
            rows += compared
            print(f"{case.name}: {case.settings} done", flush=True)
    print("energies in meV, dipoles in e Bohr")
    harness.table(summaries)
    print("in another state, or not compared:")
    shown = "state smiles xc basis precision energy converged reference_converged".split()
    harness.table([r for r in rows if r["state"] != "same"], *shown)
    missed = [f"{s['set']} {s['level']} {s['precision']}" for s in summaries if not s["reached"]]
    return harness.finish(args.out, {"summary": summaries, "rows": rows}, missed)


def _level(settings: Settings) -> Settings:
    """What a reference depends on: the precision is not part of it."""
    return replace(settings, precision="float64")


def _references(pool: Pool, cases: list[Case], cache: Path) -> dict[tuple[int, Settings], dict]:
    """PySCF's results by (molecule, level), the longest calculations first."""
    wanted = {(id(m), _level(c.settings)): m for c in cases for m in c.mols}
    tasks = [(mol, level, cache) for (_, level), mol in wanted.items()]
    tasks.sort(key=lambda task: -count_ao(task[0].numbers, task[1].basis, task[1].cart))
    found, start = {}, time.perf_counter()
    for done, (i, result) in enumerate(pool.each(reference, tasks), start=1):
        mol, level, _ = tasks[i]
        found[id(mol), level] = result
        if sys.stderr.isatty():
            seconds = time.perf_counter() - start
            print(f"\rPySCF {done}/{len(tasks)}, {seconds:.0f} s", end="", file=sys.stderr)
    return found


def _results(pool: Pool, cases: list[Case]) -> Iterable[tuple[Case, list[dict]]]:
    """Our results, case by case; a task is all molecules of one shape, hence one program."""
    places = []
    for c, case in enumerate(cases):
        shapes = [Solver(case.settings).shape(mol) for mol in case.mols]
        groups = harness.grouped(range(len(shapes)), lambda i: shapes[i])  # noqa: B023
        places += [(c, members) for members in groups.values()]
    tasks = [(cases[c].settings, [cases[c].mols[i] for i in members]) for c, members in places]
    found: list[dict[int, dict]] = [{} for _ in cases]
    for t, rows in pool.each(solve, tasks):
        c, members = places[t]
        found[c] |= zip(members, rows, strict=True)
        if len(found[c]) == len(cases[c].mols):
            yield cases[c], [found[c][i] for i in range(len(found[c]))]


def solve(settings: Settings, mols: list[Molecule]) -> list[dict[str, Any]]:
    """In a worker: our results as plain numbers, the energy without dispersion."""
    result = rks(mols, solver=Solver(settings))
    names = ("mo_energy", "dipole", "converged", "cycles")
    return [
        {name: np.asarray(getattr(result, name)[b]).tolist() for name in names}
        | {"energy": sum(float(values[b]) for values in result.energy_terms.values())}
        for b in range(len(mols))
    ]


def compare(case: Case, found: list[dict], references: dict) -> list[dict[str, Any]]:
    """Differences, ours minus PySCF's, in meV (dipole: e Bohr), molecule by molecule."""
    rows = []
    for mol, ours in zip(case.mols, found, strict=True):
        theirs = references[id(mol), _level(case.settings)]
        n = mol.n_electrons // 2
        a, b = np.array(ours["mo_energy"]), np.array(theirs["mo_energy"])
        energy = MEV * (ours["energy"] - theirs["energy"])
        state = "same" if abs(energy) < OTHER_STATE else "lower" if energy < 0 else "higher"
        usable = ours["converged"] and theirs["converged"]
        gap = MEV * ((a[n] - a[n - 1]) - (b[n] - b[n - 1])) if 0 < n < len(b) else None
        rows.append(
            {
                "set": case.name,
                **asdict(case.settings),
                "smiles": mol.smiles,
                "reference": theirs["energy"],
                "energy": energy,
                "gap": gap,
                "orbital": MEV * float(np.max(np.abs(a - b))),
                "dipole": float(np.max(np.abs(np.subtract(ours["dipole"], theirs["dipole"])))),
                "converged": ours["converged"],
                "reference_converged": theirs["converged"],
                "cycles": ours["cycles"],
                "state": state if usable else "not compared",
            }
        )
    return rows


def summarise(case: Case, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Statistics over the molecules in PySCF's state, and whether the bounds are reached."""
    same = [r for r in rows if r["state"] == "same"]
    states = [r["state"] for r in rows]

    def values(name: str) -> np.ndarray:
        return np.array([r[name] for r in same if r[name] is not None] or [np.nan])

    found: dict[str, Any] = {
        "set": case.name,
        "level": f"{case.settings.xc}/{case.settings.basis}{' cart' * bool(case.settings.cart)}",
        "precision": case.settings.precision,
        "molecules": len(rows),
        "energy_mean": float(values("energy").mean()),
        "converged": 100.0 * np.mean([r["converged"] and r["state"] != "higher" for r in rows]),
        "cycles": float(np.mean([r["cycles"] for r in rows])),
        "lower": states.count("lower"),
        "higher": states.count("higher"),
        "not_compared": states.count("not compared"),
    }
    found |= {f"{name}_mae": float(np.abs(values(name)).mean()) for name in ("energy", "gap")}
    for name in ("energy", "gap", "orbital", "dipole"):
        found[f"{name}_max"] = float(np.abs(values(name)).max())
    reached = all(found[name] <= bound for name, bound in case.bounds.items())
    return found | {"reached": bool(reached and found["converged"] >= CONVERGED)}


if __name__ == "__main__":
    sys.exit(main())
