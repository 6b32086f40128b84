"""Hostile inputs to `qm1b generate`: no crash, no traceback, every record in the data or dropped.

Hostile lines are made from a seed and given to the real command as SMILES, as tables, in an archive
and in UTF-16; damaged SDF entries and XYZ frames likewise.  The engine is the tests' fake one
unless another is named, such as

    --only lines.smi --max-aos 24 --engine qm1b.engine.factory:pyscf_ipu_solver

Problems are a run that fails, a traceback, an unknown reason, and a record that is in neither the
rows nor dropped.csv.
"""

import csv
import functools
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from benchmarks import harness
from benchmarks.robustness.hostile_lines import damaged_blocks, damaged_frames, hostile_lines
from pyscf_ipu.shapes.shape import count_ao
from qm1b import inputs
from qm1b.conformers.embed import embed
from qm1b.folder import shards
from qm1b.rows.schema import DROP_REASONS
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Candidate, Screen
from qm1b.settings import PRESETS, RunSettings

TESTS = harness.ROOT / "tests" / "qm1b"
FAKE = "fake_engine:Solver"

COMMAND = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import qm1b.engine.factory
qm1b.engine.factory.DEFAULT = sys.argv.pop(1)
from qm1b.cli import main
sys.exit(main())
"""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--lines", type=int, default=2400, help="of SMILES; others in proportion")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", default=FAKE, help="factory of the engine")
    parser.add_argument("--max-aos", type=int, default=128, help="of what the engine gets")
    parser.add_argument("--only", nargs="*", default=[], help="names of inputs")
    args = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, content in made(args.lines, args.seed).items():
            if args.only and name not in args.only:
                continue
            path = Path(scratch) / name
            path.write_bytes(content)
            results[name] = trial(path, args.engine, args.max_aos)
            print(name, json.dumps(results[name]), flush=True)
        slowest = slowest_records(Path(scratch)) if args.engine == FAKE else {}
    print("slowest", json.dumps(slowest))
    problems = [f"{name}: {p}" for name, r in results.items() for p in r["problems"]]
    print(f"{sum(r['records'] for r in results.values())} records, {len(problems)} problems")
    return harness.finish(args.out, {"inputs": results, "slowest": slowest}, problems)


def made(n: int, seed: int) -> dict[str, bytes]:
    """Inputs by name."""
    random_ = random.Random(seed)
    lines = hostile_lines(random_, n)
    few = random_.sample(lines, max(1, n // 8))
    texts = [line.decode(errors="replace") for line in few]
    return {
        "lines.smi": b"".join(line + random_.choice([b"\n", b"\n", b"\r\n"]) for line in lines),
        "utf16.smi": "\n".join(texts).encode("utf-16", errors="replace"),
        "table.csv": table(random_, texts),
        "archive.tgz": archive(few),
        "damaged.sdf": "$$$$\n".join(damaged_blocks(random_, n // 16)).encode(errors="replace"),
        "damaged.xyz": "".join(damaged_frames(random_, n // 8)).encode(errors="replace"),
    }


def table(random_: random.Random, texts: list[str]) -> bytes:
    """A CSV whose cells are hostile: well quoted, badly quoted, missing, and too many."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["id", "Canonical_SMILES", 'a "quoted" name'])
    for i, text in enumerate(texts):
        if i % 3 == 0:
            writer.writerow([i, text, 'say ""x"", and\nmore'])
        elif i % 3 == 1:
            stream.write(random_.choice([f'{i},"{text}\r\n', f"{text}\n", f'"{i}",{text},x,y,z\n']))
        else:
            stream.write(random_.choice(['"""\n', ",,,,\n", '"","",""\n', '"a"b"c",C\n', "\n"]))
    return ("\ufeff" + stream.getvalue()).encode(errors="replace")


def archive(lines: list[bytes]) -> bytes:
    """A .tgz of two parts, with what else people pack."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as file:
        half = len(lines) // 2
        for name, content in (
            ("README.md", b"# no SMILES"),
            ("b.smi", b"\n".join(lines[:half])),
            ("empty.smi", b""),
            ("._b.smi", os.urandom(8)),
            ("a.smi", b"\n".join(lines[half:])),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def trial(path: Path, engine: str, max_aos: int) -> dict:
    """Run the command on one input and look at what it left."""
    out = path.with_name(f"{path.name}-out")
    flags = ["--conformers", "1", "--workers", "2", "--embed-timeout", "4"]
    flags += ["--max-aos", str(max_aos)]
    if inputs.resolve(path) in ("table", "xyz"):
        flags.append("--keep-charged")
    command = [sys.executable, "-c", COMMAND, TESTS, engine, "generate", path, "--out", out, *flags]
    run = functools.partial(subprocess.run, capture_output=True, text=True, errors="replace")
    seconds, done = harness.timed(run, command)
    if done.returncode:
        problem = f"exit code {done.returncode}: {done.stderr[-2000:]}"
        return {"records": 0, "problems": [problem]}
    log = out / shards.LOG
    texts = [done.stdout, done.stderr, log.read_text(errors="replace") if log.exists() else ""]
    problems = [f"traceback: {text[-2000:]}" for text in texts if "Traceback" in text]
    return account(out, problems) | {"seconds": round(seconds, 1), "problems": problems}


def account(out: Path, problems: list[str]) -> dict:
    """Where each record went; adds to the problems."""
    manifest = shards.read_manifest(out)
    n = manifest.input.lines
    lines: set[int] = set()
    status: Counter[str] = Counter()
    for shard in map(shards.read_shard, shards.shards(out)):
        lines |= {int(line) for line in shard["line"]}
        status.update(text.split(":")[0] for text in shard["status"])
    with open(out / shards.DROPPED, newline="") as stream:
        drops = list(csv.DictReader(stream))
    left_out = {int(drop["line"]) for drop in drops}
    reasons = Counter(drop["reason"] for drop in drops)
    lost = set(range(1, n + 1)) - lines - left_out
    if lost:
        problems.append(f"{len(lost)} records vanished, such as {sorted(lost)[:5]}")
    if not lines | left_out <= set(range(1, n + 1)):
        problems.append("there are records that the input does not have")
    if not set(reasons) <= set(DROP_REASONS):
        problems.append(f"unknown reasons: {set(reasons) - set(DROP_REASONS)}")
    if manifest.status != "complete":
        problems.append(f"the run is {manifest.status}")
    return {"records": n, "kept": len(lines), "status": dict(status), "reasons": dict(reasons)}


def slowest_records(folder: Path) -> dict:
    """Seconds of the slowest record, screening and embedding, of the inputs in a folder."""
    worst = {"screen": (0.0, ""), "embed": (0.0, "")}
    recipe = RunSettings(PRESETS["qm1b"], conformers=1, embed_timeout=4.0)
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        settings = RunSettings(PRESETS["qm1b"], conformers=1, seed=0, max_aos=128)
        screen = Screen(Limits(lambda numbers: count_ao(numbers, "sto-3g"), 128, keep_charged=True))
        for record in inputs.read(path, settings):
            start = time.perf_counter()
            verdict = screen(record)
            middle = time.perf_counter()
            worst["screen"] = max(worst["screen"], (middle - start, record.smiles[:80]))
            if isinstance(verdict, Candidate):
                with suppress(RuntimeError, ValueError):  # what a worker reports as embed_failed
                    embed(verdict, recipe)
                took = time.perf_counter() - middle
                worst["embed"] = max(worst["embed"], (took, verdict.smiles))
    return {what: {"seconds": round(t, 3), "smiles": text} for what, (t, text) in worst.items()}


if __name__ == "__main__":
    sys.exit(main())
