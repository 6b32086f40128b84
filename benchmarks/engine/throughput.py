"""Conformers per second: ours against one single-threaded PySCF process per core.

Both sides get the same conformers, functional, basis and grid, and one pinned process per core.
PySCF runs three ways: with its own default thresholds, with conv_tol=1e-6, and with density
fitting; where we fit, too, only the last of these.  The sides take turns.  Programs are compiled
and libraries loaded before the clock starts.
Errors are those of the very rows that were timed.  For a quick look: qm1b --limit 4 --rounds 1.
"""

import argparse
import functools
import sys
import tempfile
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from benchmarks import harness, molecules
from benchmarks.engine.sides import (
    WAYS,
    error_of,
    load,
    peak_memory,
    rehearse,
    run_ours,
    run_pyscf,
)
from benchmarks.pool import Pool, cores
from pyscf_ipu import Molecule, Settings, Solver
from pyscf_ipu.shapes.shape import Shape

FITTED = "PySCF density_fit"
CHUNK = 4  # conformers of a task at most
TASKS = 4  # for each core at least, so that the cores end together
Round = tuple[float, dict[bytes, list]]
"""Conformers per second, and energy, gap and whether it converged by molecule."""


@dataclass(frozen=True)
class Case:
    """What is computed, by how many times we have to be faster than PySCF (default thresholds),
    than its fastest way and than its density fitting, and the energy error allowed (mean, meV)."""

    settings: Settings
    n_heavy: tuple[int, ...]
    limit: int
    target: float = 0.0
    target_fastest: float = 0.0
    target_fitting: float = 0.0
    error: float = 1.0
    forces: bool = False
    """Whether both sides compute forces, too."""
    memory: float = float("inf")
    """GiB that a process of ours may need."""
    smiles: tuple[str, ...] = ()
    """Other molecules than the bundled ones."""
    open_shell: bool = False
    """Whether the molecules lose a hydrogen atom, so that they are radicals."""

    @property
    def ways(self) -> tuple[str, ...]:
        """PySCF's, the one that errors are measured from first."""
        return (FITTED,) if self.settings.jk == "ri" else tuple(WAYS)


def preset(name: str, target: float, memory: float = float("inf")) -> Case:
    """Energy and forces at a published level, fitted, without D3 or D4 where these can be left out:
    both sides have them from one package."""
    level = replace(Settings.preset(name), jk="ri").without_dispersion()
    return Case(
        level,
        n_heavy=(),
        limit=6,
        target_fitting=target,
        forces=True,
        smiles=tuple(molecules.FRAGMENTS),
        memory=memory,
    )


CASES = {
    "qm1b": Case(Settings(xc="b3lyp5", grid_level=0), (9,), 32, 28.0, target_fastest=8.0),
    "forces": Case(Settings(xc="b3lyp5", grid_level=0), (9,), 16, 15.0, forces=True),
    "mixed": Case(
        Settings(xc="b3lyp5", precision="mixed", grid_level=0), (9,), 32, 6.0, error=0.01
    ),
    "small": Case(Settings(xc="b3lyp5", grid_level=0), (5, 6, 7), 48, 10.0),
    "6-31g*": Case(
        Settings(xc="b3lyp5", basis="6-31g*", grid_level=1),
        (9,),
        8,
        12.0,
        target_fitting=8.0,
        error=3.0,
    ),
    "wb97x": Case(
        Settings(xc="wb97x", basis="6-31g*", cart=True, grid_level=1),
        (9,),
        6,
        8.0,
        target_fitting=5.0,
        forces=True,
    ),
    "def2-tzvp": Case(
        Settings(xc="b3lyp", basis="def2-tzvp", grid_level=1, jk="ri", accuracy="orbitals"),
        (9,),
        4,
        target_fitting=8.0,
        memory=3.0,
    ),
    "16 heavy atoms": Case(
        Settings(xc="pbe0", basis="def2-svp", grid_level=1, jk="ri", accuracy="orbitals"),
        (16,),
        4,
        target_fitting=6.0,
    ),
    "radicals": Case(
        Settings(xc="b3lyp", grid_level=0), (9,), 16, 25.0, error=0.5, open_shell=True
    ),
    "radicals wb97x": Case(
        Settings(xc="wb97x", basis="6-31g*", cart=True, grid_level=1),
        (9,),
        4,
        40.0,
        target_fitting=9.0,
        forces=True,
        open_shell=True,
    ),
    "spice": preset("spice", 15.0, memory=4.0),
    "omol25": preset("omol25", 12.0, memory=4.0),
    "openff": preset("openff", 20.0),
    "qmugs": preset("qmugs", 20.0),
    "r2scan-3c": preset("r2scan-3c", 15.0),
}


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    harness.add_names(parser, "cases", CASES)
    parser.add_argument("--limit", type=int, help="molecules, one conformer each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--ways", nargs="*", choices=WAYS, help="of PySCF; default: all, with density fitting that"
    )
    parser.add_argument("--workers", type=int, help="processes of a side; default: one per core")
    args = parser.parse_args()
    report, missed = {}, []
    for name in args.cases or CASES:
        case = CASES[name]
        mols = chosen(case, args.limit or case.limit)
        print(f"\n{name}: {len(mols)} conformers, {case.settings}", flush=True)
        found = compare(case, mols, args)
        report[name] = found
        missed += [f"{name}: {text}" for text in verdict(case, found)]
    return harness.finish(args.out, report, missed)


def chosen(case: Case, limit: int) -> list[Molecule]:
    """Conformers of the case's molecules; of bundled ones those with the right number of heavy
    atoms and at most 14 H, with 16 heavy atoms 20 H."""
    if case.smiles:
        return molecules.embed(list(case.smiles))[:limit]
    if 16 in case.n_heavy:
        smiles, most = list(molecules.SIXTEEN), 20
    else:
        smiles = molecules.smiles_of(molecules.QM9 if 9 in case.n_heavy else molecules.GDB)
        most = 14
    found = [(m, int((m.numbers > 1).sum())) for m in molecules.embed(smiles)]
    mols = [m for m, n in found if n in case.n_heavy and m.n_atoms - n <= most][:limit]
    return [radical(mol) for mol in mols] if case.open_shell else mols


def radical(mol: Molecule) -> Molecule:
    """A molecule without its last atom, which is a hydrogen: a doublet."""
    assert mol.numbers[-1] == 1
    return Molecule(mol.numbers[:-1], mol.positions[:-1], charge=mol.charge, multiplicity=2)


def compare(case: Case, mols: list[Molecule], args: argparse.Namespace) -> dict[str, Any]:
    """Rates of every side, errors, compile time and memory."""
    rounds, costs = measured(case, mols, args)
    rates = {name: median(rate for rate, _ in found) for name, found in rounds.items()}
    ratios = {way: rates["ours"] / rate for way, rate in rates.items() if way != "ours"}
    errors = error_of(rounds["ours"][0][1], rounds[next(iter(ratios))][0][1])
    harness.table(
        {"side": name, "conformers/s": rate, "times slower": ratios.get(name, 1.0)}
        for name, rate in rates.items()
    )
    harness.table([errors | costs])
    return {
        "rates": rates,
        "ratios": ratios,
        "errors": errors,
        "conformers": len(mols),
        **costs,
        "cores": args.workers or len(cores()),
        "rounds": {k: [r for r, _ in v] for k, v in rounds.items()},
    }


def measured(
    case: Case, mols: list[Molecule], args: argparse.Namespace
) -> tuple[dict[str, list[Round]], dict[str, float]]:
    """Rounds by side; the number of programs, their compile time, our peak memory."""
    settings, forces = case.settings, case.forces
    ours = [(settings, shape, part, forces) for shape, part in batches(settings, mols)]
    shapes = list(dict.fromkeys(shape for _, shape, *_ in ours))
    longest_first = sorted(mols, key=lambda mol: -mol.n_atoms)
    with tempfile.TemporaryDirectory() as cache:
        with Pool(args.workers) as pool:  # each program once; the workers load them from the disk
            tasks = [(settings, [shape], cache, forces, case.open_shell) for shape in shapes]
            each = pool.each(load, tasks)
            seconds = sum(taken for _, taken in each)
        with (
            Pool(args.workers, load, settings, shapes, cache, forces, case.open_shell) as jax_pool,
            Pool(args.workers, rehearse, settings, forces) as pyscf_pool,
        ):
            sides = {"ours": functools.partial(one_round, jax_pool, run_ours, ours)}
            for way in args.ways or case.ways:
                tasks = [(settings, mol, WAYS[way], forces) for mol in longest_first]
                sides[way] = functools.partial(one_round, pyscf_pool, run_pyscf, tasks)
            sides["ours"]()  # starts the processes, loads what they need; not timed
            rounds = harness.in_turn(sides, args.rounds)
            peak = max(m for _, m in jax_pool.each(peak_memory, [()] * 8))
    costs = {"programs": len(shapes), "compile_seconds": seconds, "peak_mib": peak}
    return rounds, costs


def batches(settings: Settings, mols: list[Molecule]) -> list[tuple[Shape, list[Molecule]]]:
    """A few conformers of one shape each, the largest first."""
    solver = Solver(settings)
    size = max(1, min(CHUNK, len(mols) // (TASKS * len(cores()))))
    groups = harness.grouped(mols, solver.shape)
    return [
        (shape, group[i : i + size])
        for shape, group in sorted(groups.items(), key=lambda item: -item[0].n_ao)
        for i in range(0, len(group), size)
    ]


def one_round(pool: Pool, function: Any, tasks: list[tuple]) -> Round:
    """All conformers once."""
    seconds, done = harness.timed(list, pool.each(function, tasks))
    rows = {key: row for _, found in done for key, *row in found}
    return len(rows) / seconds, rows


def verdict(case: Case, found: dict[str, Any]) -> list[str]:
    """Targets that were missed."""
    ratios = found["ratios"]
    wanted = [
        (ratios.get("PySCF"), case.target, "PySCF"),
        (min(ratios.values()), case.target_fastest, "PySCF's fastest way"),
        (ratios.get(FITTED), case.target_fitting, "density fitting"),
    ]
    missed = [f"{r:.1f} of {t:.0f} times {name}" for r, t, name in wanted if r and r < t]
    if found["peak_mib"] > 1024 * case.memory:
        missed.append(f"{found['peak_mib']:.0f} MiB, more than {case.memory:.0f} GiB")
    if found["errors"]["converged"] < found["conformers"]:
        missed.append("not all converged")
    if not found["errors"]["energy_mae"] <= case.error:
        missed.append(f"mean energy error above {case.error} meV")
    return missed


if __name__ == "__main__":
    sys.exit(main())
