"""A process that makes fixtures, records and strikes, each in a fork; it hears lines of JSON."""

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from itertools import chain
from pathlib import Path

from benchmarks.robustness.faults import child, contents, judge
from benchmarks.robustness.faults.cases import CASES, FIXTURES, Case, folder_names, input_text
from benchmarks.robustness.faults.judge import Reference
from benchmarks.robustness.faults.shim import KILL, Page, Site, recorded
from qm1b.folder import shards


class Server:
    """The work of one process."""

    def __init__(self, scratch: Path, number: int) -> None:
        self.scratch, self.own = scratch, scratch / f"server-{number}"
        self.own.mkdir(exist_ok=True)
        self.page = Page(Path(os.environ["FAULTS_ORDERS"]))
        self.fixtures, self.log = scratch / "fixtures", self.own / "said"
        child.warm()

    def make_fixtures(self) -> dict[str, object]:
        """Make what the commands are given."""
        self.fixtures.mkdir()
        (self.fixtures / "tmp").mkdir()
        (self.fixtures / "input.smi").write_text(input_text())
        (self.fixtures / "one.smi").write_text("[He]\n")
        for commands in FIXTURES.values():
            for words in commands:
                self._must(Case(words, words), self.fixtures)
        self._in_fork(_by_hand, self.fixtures)
        self._half_trained(CASES["schnet train"])
        return {}

    def _half_trained(self, case: Case) -> None:
        """A training that was killed before it wrote its last checkpoint."""
        here = self._fresh(case)
        sites, _ = self._recorded(case, here)
        (site,) = [one for one in sites if one.operation == "rename" and "last" in one.pattern]
        here = self._fresh(case)
        self.page.fail(here, site, sites[site], KILL)
        self._run(case, here)
        self.page.off()
        shutil.copytree(here / "net", self.fixtures / "half-trained")

    def record(self, name: str, twice: bool) -> dict[str, object]:
        """The sites of a command; what it makes is kept as its reference.

        Made twice, it must be the same; the first run may also fill caches, and write more files.
        """
        case = CASES[name]
        here = self._fresh(case)
        before = self._state(here)
        if twice:
            self._must(case, here)
            first = self._state(here)
            self._fresh(case)
        sites, status = self._recorded(case, here)
        known = Reference(before, self._state(here), status)
        self._reference(name).write_text(json.dumps(known._asdict()))
        unlike = judge.differing(first, known.after) if twice else []
        return {"sites": [[*site, count] for site, count in sites.items()], "unlike": unlike}

    def _recorded(self, case: Case, here: Path) -> tuple[Counter[Site], int]:
        """The sites of a command, and its exit status."""
        log = self.own / "log"
        log.unlink(missing_ok=True)
        self.page.record(here, log)
        status = self._must(case, here)
        self.page.off()
        return recorded(log), status

    def trial(self, name: str, site: list[str], nth: int, fault: str) -> dict[str, object]:
        """Strike a command, give it again, and judge."""
        case = CASES[name]
        known = Reference(**json.loads(self._reference(name).read_text()))
        here = self._fresh(case)
        self.page.fail(here, Site(*site), nth, fault)
        first = self._run(case, here)
        fired = self.page.fired
        self.page.off()
        state = self._state(here)
        wrong = [*judge.first_run(known, first, fault, state)]
        wrong += judge.files_between(known, state, case.renews)
        may_refuse = case.refuses and judge.is_whole(known, state)
        again = self._run(case, here)
        state = self._state(here)
        wrong += judge.second_run(known, again, state, may_refuse=may_refuse)
        removed = fault != KILL and site[0] not in ("unlink", "rmdir")
        wrong += judge.leftovers(known, state, removed)
        return {"fired": fired, "wrong": wrong, "status": first.status, "said": first.said[-300:]}

    def _fresh(self, case: Case) -> Path:
        """A folder with what a command is given."""
        here = self.own / "trial"
        shutil.rmtree(here, ignore_errors=True)
        (here / "tmp").mkdir(parents=True)
        for fixture, name in folder_names(case):
            source = self.fixtures / fixture
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, here / name)
        if case.stdin:
            shutil.copy2(self.fixtures / case.stdin, here)
        return here

    def _state(self, folder: Path) -> dict[str, str]:
        """The contents of a folder, read in a fork: libraries that read may start threads."""
        found = self.own / "state.json"
        self._in_fork(lambda: found.write_text(json.dumps(contents.of_folder(folder))), folder)
        return json.loads(found.read_text())

    def _in_fork(self, act: Callable[..., object], folder: Path) -> None:
        def quietly() -> int:
            act(*[folder] * (act is _by_hand))
            return 0

        ended = child.in_fork(quietly, folder, self.log)
        if ended.status:
            raise RuntimeError(ended.said)

    def _run(self, case: Case, folder: Path) -> child.Ended:
        return child.command(case, folder, self.log, self.scratch / "programs")

    def _must(self, case: Case, folder: Path) -> int:
        """Run a command that must end well; 1 is a judgement (`qm1b verify`)."""
        ended = self._run(case, folder)
        if ended.status not in (0, 1) or "Traceback" in ended.said:
            raise RuntimeError(f"{case.words}: status {ended.status}: {ended.said}")
        return ended.status

    def _reference(self, name: str) -> Path:
        return self.scratch / "kept" / f"{name.replace(' ', '-')}.json"


def _by_hand(folder: Path) -> None:
    """Half a run, as a kill leaves it, and one that dropped a line which is to be tried again."""
    runs = import_module("fake_runs")
    for name in ("half", "dropped"):
        shutil.copytree(folder / "run", folder / name)
    (folder / "half" / "shard-00001.h5").unlink()
    path = shards.shard_path(folder / "dropped", 0)
    runs.drop_again(path, int(shards.read_shard(path)["line"][0]), "embed_crash")
    drops = map(shards.read_drops, shards.shards(path.parent))
    shards.write_drops(path.parent / shards.DROPPED, chain.from_iterable(drops))


def main() -> int:
    """Answer every line with a line."""
    server = Server(Path(sys.argv[1]), int(sys.argv[2]))
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        try:
            found = getattr(server, what)(*arguments)
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
