"""Random damage to `qm1b generate`: every trial must end in the dataset of an undisturbed run.

A trial starts a run in a process of its own and kills it (SIGKILL) at a random time after its
first shard, then damages what the run left (cuts a shard, flips bits, removes files).  Or it
strikes under way: kills or stops single workers, deletes a shard or the folder, kills a run that
tries dropped lines again.  Then it runs to the end; rows, dropped lines, counts and dropped.csv are
compared value by value.  The engine is the tests' fake one; files, processes, RDKit and everything
else are real.  For a quick look: --trials 10, or --only "compute killed" "embed killed" for some
kinds.  Kills and a full disk at every single operation: `benchmarks.robustness.faults`.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import harness
from benchmarks.robustness import under_way
from benchmarks.robustness.under_way import LIMIT, Fault, Started, Wrong

sys.path.insert(0, str(harness.ROOT / "tests" / "qm1b"))  # workers inherit it, and the fake engine

from pyscf_ipu.base.terminal import EXIT_USER_ERROR
from qm1b.errors import UserError
from qm1b.folder import checksum, same, shards
from qm1b.run.generate import Run, generate
from qm1b.settings import PRESETS, RunSettings

SETTINGS = RunSettings(
    PRESETS["qm1b"], conformers=2, seed=5, max_aos=128, unit_rows=8, embed_timeout=2.0
)
SCRIPT = "benchmarks.robustness.damage"


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first trial")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--only", nargs="*", default=[], help="kinds of faults")
    parser.add_argument("--retry", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.source, args.child, args.retry)
    seconds, (names, found) = harness.timed(trials, args)
    seeds = range(args.seed, args.seed + args.trials)
    results = zip(seeds, names, found, strict=True)
    wrong = [f"seed {seed} ({name}): {what}" for seed, name, (_, how) in results for what in how]
    faults = Counter(names)
    print(*(f"  {kind:<20} {n}" for kind, n in sorted(faults.items())), sep="\n")
    print(f"{sum(n for n, _ in found)} damaged shards were found and computed again")
    print(f"{args.trials} trials, {len(wrong)} differences, {seconds:.0f} s")
    report = {"trials": args.trials, "faults": faults, "wrong": wrong, "seconds": seconds}
    return harness.finish(args.out, report, wrong)


def trials(args: argparse.Namespace) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Which fault each trial has, and what `trial` found."""
    kinds: dict[str, Fault] = {
        "cut": damaged(cut),
        "bit flip": damaged(flip),
        "files removed": removed,
    }
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        source, whole = scratch / "input.smi", scratch / "whole"
        source.write_text(molecules())
        generate(Run(source, whole, SETTINGS, 2, "fake_engine:Slow"))
        print(f"{len(shards.shards(whole))} shards", flush=True)
        kinds |= under_way.faults(start)
        if args.only:
            kinds = {name: kinds[name] for name in args.only}
        seeds = range(args.seed, args.seed + args.trials)
        names = [list(kinds)[seed % len(kinds)] for seed in seeds]

        def one(seed: int, name: str) -> tuple[int, list[str]]:
            return trial(seed, kinds[name], source, scratch / f"{seed}", whole)

        with ThreadPoolExecutor(args.jobs) as pool:
            return names, list(pool.map(one, seeds, names))


def child(source: Path, out: Path, retry: bool) -> int:
    """One run, as the command does it."""
    reasons = ("embed_crash", "embed_timeout") if retry else ()
    try:
        generate(Run(source, out, SETTINGS, 1, "fake_engine:Slow", retry_dropped=reasons))
    except UserError as error:
        print(error, file=sys.stderr)
        return EXIT_USER_ERROR
    return 0


def molecules() -> str:
    """83 lines: chains, many of which are duplicates of lines far above, and some to be dropped."""
    chains = ["C" * n + "O" * m for n in range(1, 9) for m in range(3)]
    rng = random.Random(0)
    odd = ["C[C", "", "[CH3]", "CCBr", "CCl", "P", "[Na+].[Cl-]", "C" * 60]
    again = [rng.choice(chains) for _ in range(50)]
    return "\n".join([*chains[:12], *odd, *again[:20], *chains[12:], *again[20:], "OCC"]) + "\n"


def trial(seed: int, fault: Fault, source: Path, out: Path, whole: Path) -> tuple[int, list[str]]:
    """How many shards were found damaged, and how the result differs from `whole`."""
    out.mkdir()
    try:
        n_damaged = fault(random.Random(seed), source, out)
    except Wrong as error:
        return 0, [str(error)]
    last = start(source, out)
    if last.wait(LIMIT):
        return n_damaged, [f"the last run ended with status {last.returncode}"]
    return n_damaged, same.differences(whole, out)


def start(source: Path, out: Path, retry: bool = False) -> Started:
    """A run in its own process."""
    command = [sys.executable, "-m", SCRIPT, "--child", out, "--source", source]
    command += ["--retry"] * retry
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def killed(rng: random.Random, source: Path, out: Path) -> int:
    """A run is killed at a random time after a shard of its own."""
    before = len(shards.shards(out))
    process = start(source, out)
    end = time.monotonic() + LIMIT
    while len(shards.shards(out)) <= before and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    time.sleep(rng.choice([0.0, rng.uniform(0, 0.05), rng.uniform(0, 1.5)]))
    process.kill()
    process.wait()
    return 0


def damaged(damage: Callable[[random.Random, Path], None]) -> Fault:
    """A run is killed, and some of its shards are damaged."""

    def fault(rng: random.Random, source: Path, out: Path) -> int:
        killed(rng, source, out)
        victims = _some(rng, shards.shards(out))
        for path in victims:
            damage(rng, path)
        return _noticed(victims)

    return fault


def cut(rng: random.Random, path: Path) -> None:
    """A file loses its end."""
    os.truncate(path, rng.randrange(path.stat().st_size))


def flip(rng: random.Random, path: Path) -> None:
    """One to three bits of a file are flipped."""
    data = bytearray(path.read_bytes())
    for bit in rng.sample(range(8 * len(data)), rng.randint(1, 3)):
        data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def removed(rng: random.Random, source: Path, out: Path) -> int:
    """Some shards, and perhaps the manifest or dropped.csv, are gone or cut."""
    killed(rng, source, out)
    for path in _some(rng, shards.shards(out)):
        path.unlink()
    for name in rng.sample([shards.MANIFEST, shards.DROPPED], rng.randint(0, 2)):
        if rng.random() < 0.5:
            (out / name).unlink(missing_ok=True)
        else:
            os.truncate(out / name, (out / name).stat().st_size // 2)
    return 0


def _some(rng: random.Random, paths: list[Path]) -> list[Path]:
    return rng.sample(paths, min(len(paths), rng.randint(1, 3)))


def _noticed(paths: list[Path]) -> int:
    """How many of these shards are damaged; all of them must be."""
    for path in paths:
        try:
            checksum.check(path)
        except checksum.Damaged:
            continue
        raise Wrong(f"the damage of {path} is not noticed")
    return len(paths)


if __name__ == "__main__":
    sys.exit(main())
