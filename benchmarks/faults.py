"""Random faults on `qm1b generate`: every trial must end in the dataset of an undisturbed run.

    python benchmarks/faults.py
    python benchmarks/faults.py --trials 8 --seed 1

A trial starts a run in a process of its own, kills it (SIGKILL) at a random time after its first
shard, perhaps does something to what it left (cuts a shard, flips bits, removes files, kills a
second run), or lets the disk run full (a small tmpfs, as root), and then runs to the end.  Rows,
dropped lines, counts and dropped.csv are compared value by value.  The engine is the tests' fake
one; files, processes, RDKit and everything else are real.  Ends with status 1 if a trial differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "qm1b"))  # workers inherit it, and the fake engine

from qm1b import checksum, identical, store  # noqa: E402
from qm1b.commands.calling import EXIT_USER_ERROR  # noqa: E402
from qm1b.errors import UserError  # noqa: E402
from qm1b.generate import Run, generate  # noqa: E402
from qm1b.presets import PRESETS, RunSettings  # noqa: E402

SETTINGS = RunSettings(PRESETS["qm1b"], conformers=2, seed=5, max_aos=128, unit_rows=8)
TMPFS_KIB = 320
"""Too small for the dataset, large enough for several shards."""

Fault = Callable[[random.Random, Path, Path], int]
"""Takes random numbers, the input and the folder; gives the number of shards it damaged."""

LIMIT = 120.0
"""Seconds after which a run is taken to hang."""


def main() -> int:
    args = _arguments()
    if args.child:
        return child(args.source, args.child)
    start_time = time.perf_counter()
    seeds = range(args.seed, args.seed + args.trials)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        source = scratch / "input.smi"
        source.write_text(molecules())
        whole = scratch / "whole"
        generate(Run(source, whole, SETTINGS, 2, "fake_engine:Slow"))
        kinds = {"kill": killed, "kill again": killed_again, "cut": cut, "bit flip": flipped}
        kinds["files removed"] = removed
        if can_mount(scratch / "probe"):
            kinds["full disk"] = filled
        else:
            print("no trials of a full disk: mounting a tmpfs needs root")
        print(f"{len(store.shards(whole))} shards", flush=True)
        names = [list(kinds)[seed % len(kinds)] for seed in seeds]
        with ThreadPoolExecutor(args.jobs) as pool:
            jobs = [
                pool.submit(trial, seed, kinds[name], source, scratch / f"{seed}", whole)
                for seed, name in zip(seeds, names, strict=True)
            ]
            found = [job.result() for job in jobs]
    faults = Counter(names)
    results = zip(seeds, names, found, strict=True)
    wrong = [f"seed {seed} ({name}): {what}" for seed, name, (_, how) in results for what in how]
    recomputed = sum(n for n, _ in found)
    print(*(f"  {kind:<20} {n}" for kind, n in sorted(faults.items())), sep="\n")
    print(f"{recomputed} damaged shards were found and computed again")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    seconds = time.perf_counter() - start_time
    print(f"{args.trials} trials, {len(wrong)} differences, {seconds:.0f} s")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    report = {"trials": args.trials, "faults": faults, "wrong": wrong, "seconds": seconds}
    args.out.write_text(json.dumps(report, indent=1))
    return 1 if wrong else 0


def child(source: Path, out: Path) -> int:
    """One run, as the command does it."""
    try:
        generate(Run(source, out, SETTINGS, 1, "fake_engine:Slow"))
    except UserError as error:
        print(error, file=sys.stderr)
        return EXIT_USER_ERROR
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first trial")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "faults.json")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def molecules() -> str:
    """83 lines: chains, many of which are duplicates of lines far above, and some to be dropped."""
    chains = ["C" * n + "O" * m for n in range(1, 9) for m in range(3)]
    rng = random.Random(0)
    odd = ["C[C", "", "[CH3]", "CCBr", "CCl", "P", "[Na+].[Cl-]", "C" * 60]
    again = [rng.choice(chains) for _ in range(50)]
    return "\n".join([*chains[:12], *odd, *again[:20], *chains[12:], *again[20:], "OCC"]) + "\n"


def trial(seed: int, fault: Fault, source: Path, out: Path, whole: Path) -> tuple[int, list[str]]:
    """How many shards were found damaged, and how the result differs from `whole`."""
    with disk(out) if fault is filled else folder(out):
        n_damaged = fault(random.Random(seed), source, out)
        last = start(source, out)
        if last.wait(LIMIT):
            return n_damaged, [f"the last run ended with status {last.returncode}"]
        return n_damaged, identical.differences(whole, out)


def start(source: Path, out: Path) -> subprocess.Popen[bytes]:
    """A run in its own process."""
    command = [sys.executable, __file__, "--child", out, "--source", source]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def killed(rng: random.Random, source: Path, out: Path) -> int:
    """A run is killed at a random time after a shard of its own."""
    before = len(store.shards(out))
    process = start(source, out)
    end = time.monotonic() + LIMIT
    while len(store.shards(out)) <= before and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    time.sleep(rng.choice([0.0, rng.uniform(0, 0.05), rng.uniform(0, 1.5)]))
    process.kill()
    process.wait()
    return 0


def killed_again(rng: random.Random, source: Path, out: Path) -> int:
    """Two runs, one after the other."""
    return killed(rng, source, out) + killed(rng, source, out)


def cut(rng: random.Random, source: Path, out: Path) -> int:
    """Some shards of a killed run lose their end."""
    killed(rng, source, out)
    victims = _some(rng, store.shards(out))
    for path in victims:
        os.truncate(path, rng.randrange(path.stat().st_size))
    return _noticed(victims)


def flipped(rng: random.Random, source: Path, out: Path) -> int:
    """One to three bits of some shards of a killed run are flipped."""
    killed(rng, source, out)
    victims = _some(rng, store.shards(out))
    for path in victims:
        data = bytearray(path.read_bytes())
        for bit in rng.sample(range(8 * len(data)), rng.randint(1, 3)):
            data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
    return _noticed(victims)


def removed(rng: random.Random, source: Path, out: Path) -> int:
    """Some shards, and perhaps the manifest or dropped.csv, are gone or cut."""
    killed(rng, source, out)
    for path in _some(rng, store.shards(out)):
        path.unlink()
    for name in rng.sample([store.MANIFEST, store.DROPPED], rng.randint(0, 2)):
        if rng.random() < 0.5:
            (out / name).unlink(missing_ok=True)
        else:
            os.truncate(out / name, (out / name).stat().st_size // 2)
    return 0


def filled(rng: random.Random, source: Path, out: Path) -> int:
    """The disk runs full; then there is room again."""
    process = start(source, out)
    if process.wait(LIMIT) != EXIT_USER_ERROR:
        raise SystemExit(f"a full disk ended a run with status {process.returncode}")
    subprocess.run(["mount", "-o", "remount,size=64m", str(out)], check=True)
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
        raise SystemExit(f"the damage of {path} is not noticed")
    return len(paths)


def can_mount(probe: Path) -> bool:
    """Whether this process may mount small disks."""
    try:
        with disk(probe):
            return True
    except (OSError, subprocess.CalledProcessError):
        probe.rmdir()
        return False


@contextmanager
def folder(path: Path) -> Iterator[None]:
    """A folder on the ordinary disk."""
    path.mkdir()
    yield
    shutil.rmtree(path)


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """A small disk of its own."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_KIB}k", "tmpfs", str(path)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)
        path.rmdir()


if __name__ == "__main__":
    sys.exit(main())
