"""A long run of `qm1b generate`: does it leak, slow down, lose or double rows?

    python benchmarks/soak.py
    python benchmarks/soak.py --conformers 500

Bundled molecules of the commonest shapes, in an order in which each tenth of the input has the same
mix of shapes and sizes: every program is needed from the beginning. A worker keeps to the programs
that it has as long as it can, so with many shapes some are still loaded late: hence a few shapes.
Memory is the proportional set size (shared pages counted once) of this process and all workers.

Workers take the shapes in an order of their own, and a conformer of one costs half as much again as
one of another, so rows per second differ from tenth to tenth though nothing gets slower.  Hence
rates are of work: a row counts the seconds of a core that a row of its program with its SCF cycles
takes, by a fit over the whole run (`timed_engine`).  They are given per second of the clock, and
per second of the workers' processor time, which other work on the machine disturbs less.  A program
that a worker loads takes memory and time, and the last tenth of the rows has batches that do not
fill any more; so the first three tenths from the second on with no more programs to come are
compared with the seventh to ninth, by their medians.

Ends with status 1 if memory grows or a rate of work falls by more than 5 %, if open files increase,
or if a row is lost or doubled.  Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Hashable, Iterator
from pathlib import Path

import numpy as np
import timed_engine
from rdkit import Chem
from timed_engine import Batch
from watching import Sample, Watch

from pyscf_ipu import Molecule, Settings, Solver
from qm1b import store
from qm1b.commands.generate import SAMPLE
from qm1b.generate import Run, generate
from qm1b.presets import PRESETS, RunSettings

TOLERANCE = 0.05
TENTHS = 10
LATE = 8
"""The last of the tenths that are compared, from 0."""
SPAN = 3
"""Tenths at either end of which the median is taken: on a shared machine a minute, which a tenth
takes, may be a tenth faster or slower than the next."""


def main() -> int:
    args = _arguments()
    smiles = [line.split()[0] for line in SAMPLE.read_text().splitlines()]
    molecules = common(smiles, args.shapes)
    each = -(-args.conformers // len(molecules))
    settings = RunSettings(PRESETS["qm1b"], each, seed=0, max_aos=128, unit_rows=256)
    watch = Watch()
    batches = args.out.with_name(f"{args.out.stem}-batches.jsonl")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    batches.unlink(missing_ok=True)
    os.environ[timed_engine.LOG] = str(batches.resolve())
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "input.smi", Path(folder) / "out"
        source.write_text("\n".join(dealt(molecules)) + "\n")
        whole = Run(source, out, settings, args.workers, timed_engine.FACTORY)
        summary = generate(whole, watch)
        lost = list(wrong_rows(out, len(molecules), each))
    rows, done = summary.tally.rows, worked(timed_engine.read(batches), summary.stats.start)
    tenths = [tenth(watch.samples, done, rows, number) for number in range(TENTHS)]
    print("tenth  conformers/s  work/s  work/CPU second  memory [MiB]  open files  programs")
    for number, t in enumerate(tenths, start=1):
        print(
            f"{number:5d}  {t['conformers']:12.2f}  {t['rate']:6.3f}  {t['cpu_rate']:15.3f}  "
            f"{t['mib']:12.1f}  {t['files']:10.0f}  {t['programs']:8.0f}"
        )
    missed = list(judged(tenths)) + lost
    print(*missed, sep="\n", end="\n" if missed else "")
    print(f"{rows} rows in {summary.stats.seconds:.0f} s: {'MISSED' if missed else 'ok'}")
    args.out.write_text(json.dumps({"rows": rows, "tenths": tenths, "missed": missed}, indent=1))
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--conformers", type=int, default=20_000, help="in all, about")
    parser.add_argument("--shapes", type=int, default=3, help="commonest shapes to take")
    parser.add_argument("--workers", type=int, default=0, help="0 for one a core")
    default = Path(__file__).parent / "results" / "soak.json"
    parser.add_argument("--out", type=Path, default=default)
    return parser.parse_args()


def common(smiles: list[str], shapes: int) -> list[str]:
    """Molecules of so many of the commonest shapes, ten or a multiple of ten of each."""
    solver = Solver(Settings(**vars(PRESETS["qm1b"])))
    by_shape: dict[Hashable, list[str]] = {}
    for text in smiles:
        by_shape.setdefault(solver.shape(Molecule.from_smiles(text, seed=0)), []).append(text)
    found: list[str] = []
    for group in sorted(by_shape.values(), key=len, reverse=True)[:shapes]:
        whole = len(group) // TENTHS * TENTHS
        found += sorted(group[:whole], key=lambda text: (size(text), text))
    return found


def dealt(smiles: list[str]) -> list[str]:
    """What `common` found, ten by ten dealt out to ten hands, forwards and backwards in turn."""
    hands: list[list[str]] = [[] for _ in range(TENTHS)]
    for start in range(0, len(smiles), TENTHS):
        deal = smiles[start : start + TENTHS]
        turn = hands if start // TENTHS % 2 == 0 else hands[::-1]
        for hand, text in zip(turn, deal, strict=False):
            hand.append(text)
    return [text for hand in hands for text in hand]


def size(smiles: str) -> int:
    """Atomic orbitals in STO-3G of a molecule of H to Ne."""
    graph = Chem.AddHs(Chem.MolFromSmiles(smiles))
    return sum(1 if atom.GetAtomicNum() == 1 else 5 for atom in graph.GetAtoms())


def worked(batches: list[Batch], start: float) -> np.ndarray:
    """[batches + 1, 2] Seconds since the start, and seconds of work done until then.

    The work of a batch is what a fit for its program, linear in rows and SCF cycles, says.
    """
    work = np.zeros(len(batches))
    for program in {batch.program for batch in batches}:
        at = [i for i, batch in enumerate(batches) if batch.program == program]
        size = np.array([(batches[i].rows, batches[i].cycles) for i in at], dtype=float)
        seconds = np.array([batches[i].cpu_seconds for i in at])
        work[at] = size @ np.linalg.lstsq(size, seconds, rcond=None)[0]
    clock = [0.0, *(batch.ended - start for batch in batches)]
    return np.column_stack([clock, np.cumsum([0.0, *work])])


def tenth(samples: list[Sample], done: np.ndarray, rows: int, number: int) -> dict[str, float]:
    """Rates and means over one tenth of the rows."""
    bounds = (rows * number / TENTHS, rows * (number + 1) / TENTHS)
    seen = np.array([s.rows for s in samples], dtype=float)
    # Rows come in batches: the moment of each is that of the first sample that shows it.
    first = np.flatnonzero(np.diff(seen, prepend=-1.0) > 0)
    clock = np.interp(bounds, seen[first], [samples[i].seconds for i in first])
    cpu = np.interp(clock, [s.seconds for s in samples], [s.cpu_seconds for s in samples])
    work = np.interp(clock, *done.T)
    inside = [s for s in samples if bounds[0] <= s.rows <= bounds[1]] or samples[-1:]
    seconds = max(1e-9, float(clock[1] - clock[0]))
    return {
        "conformers": rows / TENTHS / seconds,
        "rate": float(work[1] - work[0]) / seconds,
        "cpu_rate": float(work[1] - work[0]) / max(1e-9, float(cpu[1] - cpu[0])),
        "mib": float(np.mean([s.mib for s in inside])),
        "files": float(max(s.files for s in inside)),
        "programs": float(max(s.programs for s in inside)),
    }


def judged(tenths: list[dict[str, float]]) -> Iterator[str]:
    """What was missed, one sentence each."""
    last = tenths[LATE]["programs"]
    early_one = next(
        i for i in range(1, LATE + 1) if i == LATE or tenths[i - 1]["programs"] == last
    )
    if early_one > LATE - 2 * SPAN + 1:
        yield f"programs were still loaded in tenth {early_one}: take more conformers"
        early_one = LATE - 2 * SPAN + 1
    early, late = median(tenths[early_one:][:SPAN]), median(tenths[: LATE + 1][-SPAN:])
    for name, worse in (("mib", 1.0), ("cpu_rate", -1.0), ("rate", -1.0), ("conformers", 0.0)):
        change = late[name] / early[name] - 1.0
        print(
            f"{name}: {change:+.1%} from tenths {early_one + 1} to {early_one + SPAN} "
            f"to tenths {LATE - SPAN + 2} to {LATE + 1}"
        )
        if worse * change > TOLERANCE:
            yield f"{name} changed by more than {TOLERANCE:.0%}"
    if late["files"] > early["files"]:
        yield f"open files increased from {early['files']:.0f} to {late['files']:.0f}"


def median(tenths: list[dict[str, float]]) -> dict[str, float]:
    """Of each figure."""
    return {name: float(np.median([one[name] for one in tenths])) for name in tenths[0]}


def wrong_rows(out: Path, n_lines: int, conformers: int) -> Iterator[str]:
    """Rows that were lost or doubled: every line has all its conformers, or a drop that says how
    many there are."""
    seen: Counter[tuple[int, int]] = Counter()
    said: dict[int, int] = {}
    for path in store.shards(out):
        _, rows, drops = store.read_whole(path)
        seen.update(zip(rows["line"].tolist(), rows["conformer"].tolist(), strict=True))
        for drop in drops:
            kept = drop.detail.partition(" ")[0]  # "3 of 20 conformers"
            said[drop.line] = int(kept) if kept.isdecimal() else 0
    yield from (f"line, conformer {key} is there {n} times" for key, n in seen.items() if n > 1)
    per_line = Counter(line for line, _ in seen)
    for line in range(1, n_lines + 1):
        expected = said.get(line, conformers)
        if per_line[line] != expected:
            yield f"line {line} has {per_line[line]} conformers, not {expected}"


if __name__ == "__main__":
    sys.exit(main())
