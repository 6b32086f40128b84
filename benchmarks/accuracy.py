"""Our energies, gaps, orbital energies and dipoles against PySCF in float64 on the same grid.

    python benchmarks/accuracy.py                          every set (hours; references are kept)
    python benchmarks/accuracy.py functionals bases        float64: all functionals, all basis sets
    python benchmarks/accuracy.py sto-3g 6-31g*            float32 and mixed on drug-like molecules
    python benchmarks/accuracy.py sto-3g --limit 10        a taste

Prints a table, writes the rows as JSON, and ends with status 1 if a bound is missed.  References
and engine use one pinned, single-threaded process per core; a molecule is computed once per level.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import molecules
import numpy as np
from pool import Pool
from reference import CACHE, reference

from pyscf_ipu import Molecule, Settings, Solver, rks
from pyscf_ipu.shape import count_ao
from pyscf_ipu.units import HARTREE_TO_EV
from pyscf_ipu.xc import FUNCTIONALS

MEV = 1e3 * HARTREE_TO_EV
OTHER_STATE = 10.0  # meV: an energy further off belongs to another SCF solution
BASES = ("6-31g", "6-31g*", "def2-svp", "cc-pvdz")


@dataclass(frozen=True)
class Bounds:
    """What has to be reached; None where nothing is asked.  Energies and gaps in meV."""

    energy_mae: float | None = None
    energy_max: float | None = None
    gap_mae: float | None = None
    orbital_max: float | None = None
    converged: float = 99.5


EXACT = Bounds(energy_max=1e-7 * MEV, orbital_max=1e-6 * MEV)
SINGLE = Bounds(energy_mae=1.0, energy_max=5.0, gap_mae=0.1)
MIXED = Bounds(energy_mae=0.01)
SINGLE_D = Bounds(energy_mae=3.0)


@dataclass(frozen=True)
class Case:
    """Molecules at a level of theory."""

    name: str
    settings: Settings
    mols: list[Molecule]
    bounds: Bounds


def functionals(limit: int) -> list[Case]:
    """float64, STO-3G, every functional; cations and chlorine compounds among the molecules."""
    mols = molecules.embed(molecules.SMALL[:limit])
    levels = [Settings(xc=xc, precision="float64") for xc in FUNCTIONALS]
    return [Case("functionals", level, mols, EXACT) for level in levels]


def bases(limit: int) -> list[Case]:
    """float64, the other basis sets with Hartree-Fock and B3LYP, and cartesian functions once."""
    few = molecules.embed(molecules.FEW[:limit])
    more = few + molecules.embed(molecules.CHLORINE[:limit])
    found = []
    for basis in BASES:
        for xc, mols in (("hf", few), ("b3lyp", more)):
            level = Settings(basis=basis, xc=xc, precision="float64")
            found.append(Case("bases", level, mols, EXACT))
    cartesian = Settings(basis="6-31g*", xc="b3lyp", precision="float64", cart=True)
    return [*found, Case("bases", cartesian, few, EXACT)]


def sto_3g(limit: int) -> list[Case]:
    """float32 and mixed on 220 molecules of 5 to 9 heavy atoms."""
    mols = molecules.mixed(limit)
    return [
        Case("sto-3g", Settings(precision=precision), mols, bounds)
        for precision, bounds in (("float32", SINGLE), ("mixed", MIXED))
    ]


def pople_d(limit: int) -> list[Case]:
    """float32 with d shells, on 24 molecules of 5 and 6 heavy atoms."""
    five_and_six = [s for i, s in enumerate(molecules.smiles_of(molecules.GDB)) if i % 4 < 2]
    mols = molecules.embed(five_and_six[: min(limit, 24)])
    return [Case("6-31g*", Settings(basis="6-31g*"), mols, SINGLE_D)]


SETS = {"functionals": functionals, "bases": bases, "sto-3g": sto_3g, "6-31g*": pople_d}


def main() -> int:
    args = _arguments()
    cases = [c for name in args.sets for c in SETS[name](args.limit)]
    if args.precision:
        cases = [c for c in cases if c.settings.precision in args.precision]
    cases = [c for c in cases if not args.xc or c.settings.xc in args.xc]
    if not cases:
        raise SystemExit("no set is left after --precision and --xc: leave one of them out")
    with Pool(args.workers) as pool:
        references = _references(pool, cases, args.cache)
        summaries, rows = [], []
        print(HEADER)
        for case, found in _results(pool, cases):
            compared = compare(case, found, references)
            summary = summarise(case, compared)
            print(line(summary), flush=True)
            summaries.append(summary)
            rows += compared
    _print_others(rows)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps({"summary": summaries, "rows": rows}, indent=1))
    print(f"rows: {args.out}")
    return 0 if all(s["reached"] for s in summaries) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", help=f"of {', '.join(SETS)}; default: all")
    parser.add_argument("--precision", nargs="*", help="only these: float64 float32 mixed")
    parser.add_argument("--xc", nargs="*", help="only these functionals")
    parser.add_argument("--limit", type=int, default=10_000, help="molecules per set, at most")
    parser.add_argument("--workers", type=int, help="processes; default: one per core")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where references are kept")
    default = Path(__file__).parent / "results" / "accuracy.json"
    parser.add_argument("--out", type=Path, default=default, help="JSON with every molecule")
    args = parser.parse_args()
    args.sets = args.sets or list(SETS)
    unknown = sorted(set(args.sets) - set(SETS))
    if unknown:
        parser.error(f"unknown set {unknown[0]!r}: choose from {', '.join(SETS)}")
    return args


def _level(settings: Settings) -> Settings:
    """What a reference depends on: the precision is not part of it."""
    return Settings(settings.basis, settings.xc, settings.grid_level, "float64", settings.cart)


def _size(mol: Molecule, settings: Settings) -> int:
    return count_ao(mol.numbers, settings.basis, settings.cart)


def _references(pool: Pool, cases: list[Case], cache: Path) -> dict[tuple[int, Settings], dict]:
    """PySCF's results by (molecule, level), the longest calculations first."""
    wanted = {(id(m), _level(c.settings)): m for c in cases for m in c.mols}
    tasks = sorted(
        ((m, level, cache) for (_, level), m in wanted.items()), key=lambda t: -_size(t[0], t[1])
    )
    found, start = {}, time.perf_counter()
    for done, (i, result) in enumerate(pool.each(reference, tasks), start=1):
        mol, level, _ = tasks[i]
        found[id(mol), level] = result
        if sys.stderr.isatty():
            seconds = time.perf_counter() - start
            print(f"\rPySCF {done}/{len(tasks)}, {seconds:.0f} s", end="", file=sys.stderr)
    print(f"\n{len(tasks)} references, {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return found


def _results(pool: Pool, cases: list[Case]) -> Iterable[tuple[Case, list[dict]]]:
    """Our results, case by case; a task is all molecules of one shape, hence one program."""
    tasks, places = [], []
    for c, case in enumerate(cases):
        solver = Solver(case.settings)
        groups: dict[Any, list[int]] = {}
        for i, mol in enumerate(case.mols):
            groups.setdefault(solver.shape(mol), []).append(i)
        for members in groups.values():
            tasks.append((case.settings, [case.mols[i] for i in members]))
            places.append((c, members))
    waiting = [len(case.mols) for case in cases]
    found: list[list] = [[None] * len(case.mols) for case in cases]
    for t, rows in pool.each(solve, tasks):
        c, members = places[t]
        for i, row in zip(members, rows, strict=True):
            found[c][i] = row
        waiting[c] -= len(members)
        if not waiting[c]:
            yield cases[c], found[c]


def solve(settings: Settings, mols: list[Molecule]) -> list[dict[str, Any]]:
    """In a worker: our results as plain numbers."""
    result = rks(mols, solver=Solver(settings))
    return [
        {
            "energy": float(result.energy[b]),
            "mo_energy": result.mo_energy[b].tolist(),
            "dipole": result.dipole[b].tolist(),
            "converged": bool(result.converged[b]),
            "cycles": int(result.cycles[b]),
            "status": result.status[b],
        }
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
                "set": case.name, **asdict(case.settings), "smiles": mol.smiles,
                "reference": theirs["energy"], "energy": energy, "gap": gap,
                "orbital": MEV * float(np.max(np.abs(a - b))),
                "dipole": float(np.max(np.abs(np.subtract(ours["dipole"], theirs["dipole"])))),
                "converged": ours["converged"], "reference_converged": theirs["converged"],
                "cycles": ours["cycles"], "state": state if usable else "not compared",
            }
        )  # fmt: skip
    return rows


def summarise(case: Case, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Statistics over the molecules in PySCF's state, and whether the bounds are reached."""
    same = [r for r in rows if r["state"] == "same"]

    def values(name: str) -> np.ndarray:
        return np.abs([r[name] for r in same if r[name] is not None] or [np.nan])

    converged = 100.0 * sum(r["converged"] and r["state"] != "higher" for r in rows) / len(rows)
    found = {
        "set": case.name,
        "level": f"{case.settings.xc}/{case.settings.basis}{' cart' * case.settings.cart}",
        "precision": case.settings.precision,
        "molecules": len(rows),
        "energy_mae": float(values("energy").mean()),
        "energy_max": float(values("energy").max()),
        "energy_mean": float(np.mean([r["energy"] for r in same] or [np.nan])),
        "gap_mae": float(values("gap").mean()),
        "gap_max": float(values("gap").max()),
        "orbital_max": float(values("orbital").max()),
        "dipole_max": float(values("dipole").max()),
        "converged": converged,
        "cycles": float(np.mean([r["cycles"] for r in rows])),
        "lower": sum(r["state"] == "lower" for r in rows),
        "higher": sum(r["state"] == "higher" for r in rows),
        "not_compared": sum(r["state"] == "not compared" for r in rows),
    }
    limits = {k: v for k, v in asdict(case.bounds).items() if v is not None}
    enough = found["converged"] >= limits.pop("converged")
    found["reached"] = bool(enough and all(found[k] <= v for k, v in limits.items()))
    return found


HEADER = (
    f"{'set':12}{'level':16}{'precision':10}{'n':>4}{'|dE| mean':>11}{'max':>9}{'bias':>9}"
    f"{'|dgap|':>9}{'|de| max':>10}{'|dmu| max':>10}{'conv.':>8}{'other':>6}  (meV, e Bohr)"
)


def line(s: dict[str, Any]) -> str:
    """One row of the table."""
    return (
        f"{s['set']:12}{s['level']:16}{s['precision']:10}{s['molecules']:4d}"
        f"{s['energy_mae']:11.2g}{s['energy_max']:9.2g}{s['energy_mean']:9.2g}{s['gap_mae']:9.2g}"
        f"{s['orbital_max']:10.2g}{s['dipole_max']:10.2g}{s['converged']:7.1f}%"
        f"{s['lower'] + s['higher'] + s['not_compared']:6d}  {'ok' if s['reached'] else 'MISSED'}"
    )


def _print_others(rows: list[dict[str, Any]]) -> None:
    others = [r for r in rows if r["state"] != "same"]
    for r in others:
        print(
            f"{r['state']}: {r['smiles']} {r['xc']}/{r['basis']} {r['precision']} "
            f"{r['energy']:+.1f} meV, converged {r['converged']}/{r['reference_converged']}"
        )


if __name__ == "__main__":
    sys.exit(main())
