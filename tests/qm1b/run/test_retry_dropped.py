"""Lines that an older run has dropped are computed after all, and nothing else changes."""

import csv
import json
from collections import Counter

import pytest
from fake_runs import MANY, drop_again, fake_run

from qm1b.cli import main
from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.folder.manifest import manifest
from qm1b.folder.run_folder import LockedFolder
from qm1b.rows.schema import RETRIABLE

EMBED = ("embed_crash", "embed_timeout")


@pytest.fixture
def older(partial):
    """The folder of a run that has dropped three good lines, and a part of a fourth."""
    first, *_, last = shards.shards(partial)[:8]
    for path, line, reason, keep in (
        (first, 2, "embed_crash", 0),
        (first, 3, "embed_timeout", 1),
        (first, 1, "embed_crash", 0),
        (last, 29, "embed_crash", 0),
    ):
        drop_again(path, line, reason, keep)
    return partial


def again(out, **changes):
    return fake_run(out.parent, MANY, **changes)


def reasons(folder):
    with open(folder / shards.DROPPED, newline="") as stream:
        return {int(row["line"]): row["reason"] for row in csv.DictReader(stream)}


def test_without_the_option_they_stay_dropped(whole, older):
    _, summary = again(older, factory="fake_engine:only_in_the_parent")  # nothing to compute
    assert summary.tally.drops["embed_crash"] == 3
    assert reasons(older)[29] == "embed_crash"


def test_they_are_computed_and_the_folder_is_that_of_an_undisturbed_run(whole, older):
    before = {path.name: path.read_bytes() for path in shards.shards(older)}
    _, summary = again(older, retry_dropped=EMBED)
    assert same.differences(whole, older) == []
    assert summary.stats.drops == summary.tally.drops
    assert summary.stats.rows == summary.tally.rows
    assert summary.stats.lines == summary.tally.lines == 39
    assert summary.tally.drops == shards.read_manifest(whole).counts.drops
    assert shards.read_manifest(older).runs[-1]["rows"] == 7
    changed = [p.name for p in shards.shards(older) if p.read_bytes() != before[p.name]]
    assert changed == ["shard-00000.h5", "shard-00007.h5"]


def test_only_the_reasons_that_are_named(older):
    _, summary = again(older, retry_dropped=("embed_timeout",))
    assert reasons(older)[2] == "embed_crash"
    assert 3 not in reasons(older)
    assert summary.tally.drops["embed_crash"] == 3
    assert "embed_timeout" not in summary.tally.drops


def test_a_run_that_is_killed_in_between_loses_and_doubles_nothing(whole, older, monkeypatch):
    real = LockedFolder.add

    def killed(self, unit, versions=None):
        if len(self.again) == 1:
            raise KeyboardInterrupt  # at the worst moment: one shard is mended, one is not
        real(self, unit, versions)

    with monkeypatch.context() as patch:
        patch.setattr(LockedFolder, "add", killed)
        with pytest.raises(KeyboardInterrupt):
            again(older, retry_dropped=EMBED)
    units, counts = map(shards.read_unit, shards.shards(older)), shards.read_manifest(older).counts
    rows, drops = zip(*((unit.rows, unit.drops) for unit in units), strict=True)
    assert counts.drops["embed_crash"] in (1, 2)
    assert counts.drops == Counter(drop.reason for some in drops for drop in some)
    assert counts.rows == sum(map(len, rows))
    again(older, retry_dropped=EMBED)
    assert same.differences(whole, older) == []


def test_a_lost_shard_is_computed_too(whole, older):
    shards.shards(older)[3].unlink()
    again(older, retry_dropped=EMBED)
    assert same.differences(whole, older) == []


def test_with_other_software_a_shard_names_both(whole, older, monkeypatch):
    newer = manifest.versions() | {"rdkit": "2099.1"}
    monkeypatch.setattr(manifest, "versions", lambda *_: newer)
    with pytest.raises(UserError, match="--allow-other-versions"):
        again(older, retry_dropped=EMBED)
    again(older, retry_dropped=EMBED, other_versions=True)
    assert [len(shards.read_unit(p).rows) for p in shards.shards(older)] == [
        len(shards.read_unit(p).rows) for p in shards.shards(whole)
    ]
    told = [json.loads(shards.read_attributes(p)["versions"]) for p in shards.shards(older)]
    assert any(versions["rdkit"].endswith(", then 2099.1") for versions in told)
    assert all(versions["numpy"] == newer["numpy"] for versions in told)


def test_unknown_reasons_are_refused(older, tmp_path, capsys):
    words = f"names 'duplicate': only lines dropped as {', '.join(RETRIABLE)} can be tried again"
    with pytest.raises(UserError, match=words):
        again(older, retry_dropped=("embed_crash", "duplicate"))
    command = ["generate", str(tmp_path / "input.smi"), "--retry-dropped"]
    assert main([*command, "embed_crash,", "--out", str(older)]) == 2
    assert "names ''" in capsys.readouterr().err
    assert main([*command, "embed_crash"]) == 2
    assert "--retry-dropped needs --out" in capsys.readouterr().err


def test_the_command_passes_the_reasons_on(tmp_path, monkeypatch):
    given = []

    def generate(run, display):
        given.append(run.retry_dropped)
        raise UserError("enough")

    monkeypatch.setattr("qm1b.run.generate.generate", generate)
    (tmp_path / "in.smi").write_text("C\n")
    flags = ["--retry-dropped", "embed_crash, embed_timeout", "--out", str(tmp_path / "out")]
    assert main(["generate", str(tmp_path / "in.smi"), *flags]) == 2
    assert given == [EMBED]
