"""A long run of `qm1b generate`: does it leak, slow down, lose or double rows?  Linux only.

The input is bundled molecules of the commonest shapes.  Each tenth of it has the same mix of shapes
and sizes, so every program is needed from the beginning.  A worker keeps to its programs as long as
it can; with many shapes some would be loaded late, hence a few.  Memory is the proportional set
size (shared pages counted once) of this process and all workers.

A conformer of one shape costs half as much again as one of another, and workers take shapes in an
order of their own.  So rates are of work, not of rows: a row counts the seconds of a core that its
program takes for its SCF cycles, by a fit over the whole run.  They are given per second of the
clock and of the workers' processor time; other work on the machine disturbs the second less.

A program that a worker loads takes memory and time, and in the last tenth batches do not fill any
more.  So the medians of two spans are compared: three tenths from the second on in which no program
is loaded any more, and the seventh to the ninth.  A run fails if memory grows or a rate of work
falls by more than 5 %, if more files are open, or if a row is lost or doubled.  For a quick look:
--conformers 500.
"""

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import harness, molecules
from benchmarks.generator import watching
from benchmarks.generator.watching import Batch, Sample, Watch
from pyscf_ipu import Molecule, Solver
from qm1b.commands.generate import SAMPLE
from qm1b.folder import shards
from qm1b.run.generate import Run, generate
from qm1b.settings import PRESETS, RunSettings

TOLERANCE = 0.05
TENTHS = 10
LATE = 8
"""The last of the tenths that are compared, from 0."""
SPAN = 3
"""Number of tenths in each span.  A tenth takes about a minute, and on a shared machine one minute
may be 10 % faster or slower than the next, so the median of several is taken."""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--conformers", type=int, default=20_000, help="in all, about")
    parser.add_argument("--shapes", type=int, default=3, help="commonest shapes to take")
    parser.add_argument("--workers", type=int, default=0, help="0 for one per core")
    args = parser.parse_args()
    smiles = dealt(common(molecules.smiles_of(SAMPLE), args.shapes))
    each = -(-args.conformers // len(smiles))
    settings = RunSettings(PRESETS["qm1b"], each, seed=0, max_aos=128, unit_rows=256)
    watch = Watch()
    batches = args.out.with_name(f"{args.out.stem}-batches.jsonl")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    batches.unlink(missing_ok=True)
    os.environ[watching.LOG] = str(batches.resolve())
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "input.smi", Path(folder) / "out"
        source.write_text("\n".join(smiles) + "\n")
        whole = Run(source, out, settings, args.workers, watching.FACTORY)
        summary = generate(whole, watch)
        lost = list(wrong_rows(out, len(smiles), each))
    rows, done = summary.tally.rows, worked(watching.read(batches), summary.stats.start)
    tenths = [tenth(watch.samples, done, rows, number) for number in range(TENTHS)]
    harness.table(tenths)
    missed = [*judged(tenths), *lost]
    print(f"{rows} rows in {summary.stats.seconds:.0f} s")
    return harness.finish(args.out, {"rows": rows, "tenths": tenths, "missed": missed}, missed)


def common(smiles: list[str], shapes: int) -> list[str]:
    """Molecules of this many of the commonest shapes, ten or a multiple of ten of each."""
    solver = Solver(PRESETS["qm1b"])
    by_shape = harness.grouped(
        smiles, lambda text: solver.shape(Molecule.from_smiles(text, seed=0))
    )
    found: list[str] = []
    for group in sorted(by_shape.values(), key=len, reverse=True)[:shapes]:
        whole = len(group) // TENTHS * TENTHS
        found += sorted(group[:whole], key=lambda text: (molecules.n_ao(text), text))
    return found


def dealt(smiles: list[str]) -> list[str]:
    """What `common` found, dealt out like cards to ten hands, forwards and backwards in turn."""
    deals = [smiles[start : start + TENTHS] for start in range(0, len(smiles), TENTHS)]
    deals[1::2] = [deal[::-1] for deal in deals[1::2]]
    return [text for hand in zip(*deals, strict=True) for text in hand]


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
    frame = pd.DataFrame(tenths)
    early = frame.iloc[early_one : early_one + SPAN].median().to_dict()
    late = frame.iloc[LATE - SPAN + 1 : LATE + 1].median().to_dict()
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


def wrong_rows(out: Path, n_lines: int, conformers: int) -> Iterator[str]:
    """Rows that were lost or doubled: every line has all its conformers, or a drop that says how
    many there are."""
    seen: Counter[tuple[int, int]] = Counter()
    said: dict[int, int] = {}
    for path in shards.shards(out):
        _, rows, drops = shards.read_whole(path)
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
