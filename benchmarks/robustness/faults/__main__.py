"""Every command that writes files, struck at every file operation: nothing lost, half or stuck.

A small library (shim.c) is preloaded into the command and its worker processes.  It records all
operations on files in the folder of a trial; a site is an operation on a kind of file.  Then each
site is struck, at its first and at its last occurrence: the processes are killed (SIGKILL) there,
or the operation fails with EIO, or with ENOSPC, after which the disk stays full.  The command must
end with a sentence and leave whole files, and the same command again must end as if nothing had
happened, with nothing left over.  Chemistry is faked where a command allows it.  A quick look:
--sample 180, or --only "export parquet".
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from benchmarks import harness
from benchmarks.robustness.faults import shim
from benchmarks.robustness.faults.cases import CASES
from benchmarks.robustness.faults.shim import FAULTS, Site


class Trial(NamedTuple):
    """A command, and where it is struck."""

    case: str
    site: Site
    nth: int
    fault: str

    @property
    def flags(self) -> str:
        """The options that repeat it."""
        return f'--only "{self.case}" --site "{self.site}" --nth {self.nth} --fault {self.fault}'


class Servers:
    """Processes that work side by side."""

    def __init__(self, scratch: Path, number: int) -> None:
        library = shim.library(scratch)
        (scratch / "kept").mkdir()
        self._free: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        self._all = [_server(scratch, each, library) for each in range(number)]
        for one in self._all:
            self._free.put(one)
        self._pool = ThreadPoolExecutor(number)

    def ask(self, *what: object) -> dict[str, Any]:
        """Let a free one do something."""
        one = self._free.get()
        try:
            assert one.stdin
            assert one.stdout
            one.stdin.write(json.dumps(what) + "\n")
            one.stdin.flush()
            line = one.stdout.readline()
        finally:
            self._free.put(one)
        return json.loads(line) if line else {"error": "the process that tries them died"}

    def each(self, requests: list[tuple[object, ...]]) -> Iterator[dict[str, Any]]:
        """Let them do many things, in this order."""
        return self._pool.map(lambda request: self.ask(*request), requests)

    def stop(self) -> None:
        """End them."""
        for one in self._all:
            one.kill()
            one.wait()


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.set_defaults(out=harness.HERE / "results" / "faults.json")
    parser.prog = "python -m benchmarks.robustness.faults"
    parser.add_argument("--sample", type=float, help="seconds; evenly chosen trials fit into them")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--only", nargs="*", default=[], help="commands, or their first words")
    parser.add_argument("--site", help="operation and pattern")
    parser.add_argument("--nth", type=int, help="which of its operations")
    parser.add_argument("--fault", choices=FAULTS)
    args = parser.parse_args()
    quick = [name for name, case in CASES.items() if not (args.sample and case.slow)]
    names = chosen(args.only) if args.only else quick
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        scratch = Path(os.path.realpath(folder))
        servers = Servers(scratch, args.jobs)
        try:
            _good(servers.ask("make_fixtures"), "fixtures")
            told = servers.each([("record", name, not args.sample) for name in names])
            found = {n: _good(one, n) for n, one in zip(names, told, strict=True)}
            trials = [t for n in names for t in trials_of(n, found[n]["sites"]) if wanted(t, args)]
            print(f"{len(trials)} trials, {time.monotonic() - begun:.0f} s until here", flush=True)
            results = run(servers, trials, begun + args.sample if args.sample else None)
        finally:
            servers.stop()
    return report(args.out, found, results, time.monotonic() - begun)


def chosen(words: list[str]) -> list[str]:
    """The commands of these names, or that begin with them; raises SystemExit if there are none."""
    for word in words:
        if not any(name.startswith(word) for name in CASES):
            raise SystemExit(f"no command {word!r}: the commands are {', '.join(CASES)}")
    begins = tuple(word for word in words if word not in CASES)
    return [name for name in CASES if name in words or name.startswith(begins)]


def trials_of(name: str, sites: list[list[Any]]) -> Iterator[Trial]:
    """The first and the last occurrence of every site, with all that may happen there."""
    for operation, pattern, count in sites:
        site = Site(operation, pattern)
        for nth in sorted({1, count}):
            yield from (Trial(name, site, nth, fault) for fault in site.faults)


def wanted(trial: Trial, args: Any) -> bool:
    """Whether the options ask for a trial."""
    asked = ((args.site, str(trial.site)), (args.nth, trial.nth), (args.fault, trial.fault))
    return all(option in (None, value) for option, value in asked)


def run(
    servers: Servers, trials: list[Trial], end: float | None
) -> list[tuple[Trial, dict[str, Any]]]:
    """Trials and their results; until `end`, those that fit, evenly chosen."""
    if end is not None:  # by the golden ratio: every beginning of this order is spread evenly
        golden = (5**0.5 - 1) / 2
        trials = sorted(trials, key=lambda trial: trials.index(trial) * golden % 1)
    results = []

    def one(trial: Trial) -> dict[str, Any] | None:
        return None if end and time.monotonic() > end else servers.ask("trial", *trial)

    for trial, result in zip(trials, servers._pool.map(one, trials), strict=True):
        if result is None:
            continue
        results.append((trial, result))
        if len(results) % 100 == 0:
            print(f"  {len(results)} trials: {trial.flags}", flush=True)
        for kind, what in result.get("wrong", [("error", result.get("error"))]):
            print(f"{kind}: {what}\n    {trial.flags}", flush=True)
    return results


def report(out: Path, found: dict[str, Any], results: list[Any], seconds: float) -> int:
    """Print the table; returns the exit status."""
    from benchmarks.robustness.faults.judge import KINDS

    rows, missed = [], [] if results else ["no trial at all: the time is too short"]
    for name, one in found.items():
        mine = [(trial, result) for trial, result in results if trial.case == name]
        wrong = Counter(
            kind for _, r in mine for kind in {k for k, _ in r.get("wrong", [("error", "")])}
        )
        missed += [f"{trial.flags}: {r}" for trial, r in mine if r.get("wrong") or "error" in r]
        missed += [f"{name}: {file} differs between undisturbed runs" for file in one["unlike"]]
        operations = sum(count for *_, count in one["sites"])
        rows.append(
            {
                "command": name,
                "operations": operations,
                "sites": len(one["sites"]),
                "trials": len(mine),
                "not reached": sum(not r.get("fired", True) for _, r in mine),
                **{kind: wrong[kind] for kind in KINDS},
            }
        )
    whole = {"command": "all", **{k: sum(r[k] for r in rows) for k in rows[0] if k != "command"}}
    harness.table([*rows, whole])
    print(
        f"{whole['trials']} trials at {whole['sites']} sites, which stand for "
        f"{whole['operations']} operations; {seconds:.0f} s"
    )
    return harness.finish(out, {"commands": [*rows, whole], "seconds": seconds}, missed)


def _good(answer: dict[str, Any], what: str) -> dict[str, Any]:
    if "error" in answer:
        raise SystemExit(f"{what}: {answer['error']}")
    return answer


def _server(scratch: Path, number: int, library: Path) -> subprocess.Popen[str]:
    orders = scratch / f"orders-{number}"
    shim.Page(orders)
    caches = {"PYSCF_IPU_CACHE": "engine", "MPLCONFIGDIR": "matplotlib"}
    env = {name: str(scratch / folder) for name, folder in caches.items()}
    env |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    env |= {"LD_PRELOAD": str(library), "FAULTS_ORDERS": str(orders), "JAX_PLATFORMS": "cpu"}
    env["XLA_FLAGS"] = (
        "--xla_backend_optimization_level=0"  # programs are compiled in half the time
    )
    paths = [str(harness.ROOT), str(harness.ROOT / "tests" / "qm1b")]
    env["PYTHONPATH"] = os.pathsep.join(paths)
    command = [sys.executable, "-m", "benchmarks.robustness.faults.server", scratch, str(number)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | env
    )


if __name__ == "__main__":
    raise SystemExit(main())
