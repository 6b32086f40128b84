"""Lost shards are noticed, whatever looks at the folder; unfinished runs say that they are."""

import json
import os
import shutil
from dataclasses import replace

import h5py
import pytest
from fake_runs import MANY, fake_run

from qm1b.audit.invariants import Invariants
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.convert.split import Fractions, split
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.completeness import notice, ranges
from qm1b.folder.manifest.work_units import Share
from qm1b.folder.shard_folder import ShardFolder
from qm1b.report.card.facts import Statements
from qm1b.report.card.write import write
from qm1b.report.info import describe
from qm1b.storage.lock import locked

pytestmark = pytest.mark.usefixtures("blank_pictures")


@pytest.fixture
def copy(whole, tmp_path):
    """A run of ten units that may be harmed."""
    return shutil.copytree(whole, tmp_path / "copy")


def change(folder, **changes):
    manifest = shards.read_manifest(folder)
    shards.write_manifest(folder, replace(manifest, **changes))


def broken(folder):
    source = ShardFolder(folder)
    checks = Invariants(source.manifest.fingerprint)
    for path in source.shards:
        checks.add(path, shards.read_shard(path))
    checks.compare(source.manifest)
    seen = checks.finish()
    return {name: seen[name] for name in ("missing_shard", "counts") if seen[name].count}


def test_a_whole_run(whole):
    assert notice(ShardFolder(whole)) == ""
    assert broken(whole) == {}


def test_a_lost_shard_is_noticed_everywhere(copy, tmp_path):
    for unit in (3, 9):
        shards.shard_path(copy, unit).unlink()
    violations = broken(copy)
    assert violations["missing_shard"].count == 2
    assert violations["missing_shard"].examples == ["units 3, 9, the run is complete"]
    assert violations["counts"].count >= 2
    for use in (
        lambda: export(copy, tmp_path / "a.parquet"),
        lambda: split(copy, tmp_path / "s", Fractions()),
        lambda: write(copy, tmp_path / "card", Statements("x")),
        lambda: describe(copy),
    ):
        with pytest.raises(UserError, match=r"lost 2 of the shards .*units 3, 9"):
            use()
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


@pytest.mark.parametrize("name", ["manifest.json", "shard-00001.h5"])
def test_a_pipe_in_a_folder_is_not_read(copy, name, capsys):
    (copy / name).unlink()
    os.mkfifo(copy / name)
    for command in ("info", "verify"):
        assert main([command, str(copy)]) == 2
        assert "it is no plain file" in capsys.readouterr().err


def test_a_damaged_element_is_one_sentence(copy, tmp_path, capsys):
    path = shards.shards(copy)[1]
    with h5py.File(path) as file:
        offset = file["rows/numbers"].id.get_offset()
    data = bytearray(path.read_bytes())
    data[offset] |= 128
    path.write_bytes(data)
    assert main(["export", str(copy), str(tmp_path / "a.extxyz")]) == 2
    assert "its checksum does not match" in capsys.readouterr().err


def test_rows_that_are_not_as_counted(copy):
    path = shards.shards(copy)[0]
    attributes, _, drops = shards.read_whole(path)
    plain = {
        name: getattr(value, "item", lambda v=value: v)() for name, value in attributes.items()
    }
    shards.write_shard(copy, 0, [], drops[1:], plain)
    texts = broken(copy)["counts"].examples
    assert [text.split()[0] for text in texts] == ["rows", "statuses", *["dropped"] * bool(drops)]


def test_an_interrupted_run_may_be_used_and_says_so(copy, tmp_path, capsys):
    counts = replace(shards.read_manifest(copy).counts, units=6)
    for unit in range(6, 10):
        shards.shard_path(copy, unit).unlink()
    change(copy, status="interrupted", counts=counts)
    for command in (
        ["export", str(copy), str(tmp_path / "a.parquet")],
        ["split", str(copy)],
        ["info", str(copy)],
        ["card", str(copy), "--parquet", str(tmp_path / "a.parquet")],
    ):
        assert main(command) == 0
        error = capsys.readouterr().err
        text = "not complete but interrupted: 6 of 10 work units are there (missing: 6 to 9)"
        assert text in error
    assert "**Incomplete**" in (copy / "card" / "README.md").read_text()
    about = json.loads((copy / "card" / "croissant.json").read_text())
    assert "6 of 10" in about["description"]
    assert broken(copy)["missing_shard"].count == 4
    shards.shard_path(copy, 2).unlink()  # of those that had been written
    with pytest.raises(UserError, match="lost 1 of the shards"):
        export(copy, tmp_path / "b.parquet")


def test_a_share_has_its_own_units(tmp_path):
    out, _ = fake_run(tmp_path, MANY, share=Share(1, 3))
    assert notice(ShardFolder(out)) == ""
    assert broken(out) == {}
    count, units = shards.read_manifest(out).missing([1, 7])
    assert (count, list(units)) == (1, [4])
    shutil.copy(shards.shard_path(out, 4), shards.shard_path(out, 5))
    with pytest.raises(UserError, match=r"shard-00005.h5 in .* is not of its run"):
        notice(ShardFolder(out))


def test_ranges():
    assert ranges([1, 2, 3, 5, 8, 9]) == "1 to 3, 5, 8 to 9"
    assert ranges(range(0, 40, 2)).endswith("14, ...")


def test_a_killed_run_is_not_called_running(copy, tmp_path):
    change(copy, status="running")
    with locked(copy):
        assert "is not complete but running" in notice(ShardFolder(copy))
        assert describe(copy).startswith(f"{copy}: running,")
    assert "is not complete but killed" in notice(ShardFolder(copy))
    assert describe(copy).startswith(f"{copy}: killed,")
    write(copy, tmp_path / "card", Statements("x"))
    assert "The run's status is killed," in (tmp_path / "card" / "README.md").read_text()
