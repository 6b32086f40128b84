"""Parts of a run, made by --shard, become the whole one."""

import shutil

import pytest
from fake_runs import MANY, fake_run, flip, frames

from qm1b.cli import main
from qm1b.commands.ending import outcome
from qm1b.commands.generate import Generate, part_name
from qm1b.convert.merge import merge
from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.folder.manifest.work_units import Share


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """MANY in three shares."""
    made = []
    for index in range(3):
        folder = tmp_path_factory.mktemp(f"part{index}")
        out, summary = fake_run(folder, MANY, share=Share(index, 3))
        assert shards.read_manifest(out).status == "complete"
        assert summary.tally.lines == summary.stats.n_lines == summary.stats.lines
        made.append(out)
    return made


def test_the_parts_make_the_whole(parts, whole, tmp_path, capsys):
    units = [[shards.unit_of(path) for path in shards.shards(part)] for part in parts]
    assert units == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    out = tmp_path / "merged"
    # The whole as a further part: its units lie in two folders each, and are the same.
    assert main(["merge", *map(str, [*parts, whole]), "--out", str(out)]) == 0
    assert "10 shards (10 copied now), from 4 folders" in capsys.readouterr().out
    assert same.differences(whole, out) == []
    assert len(shards.read_manifest(out).runs) == 5


def test_a_stopped_merge_goes_on(parts, whole, tmp_path):
    merge(parts, tmp_path / "out")
    flip(shards.shards(tmp_path / "out")[2], 4000)
    shards.shards(tmp_path / "out")[1].unlink()
    assert merge(parts, tmp_path / "out").copied == 2
    assert same.differences(whole, tmp_path / "out") == []


def test_molecules_of_several_units_are_not_counted_twice(finished, tmp_path, capsys):
    """24 frames of 12 molecules, each of which is in two units."""
    for rows, expected in ((8, "24 input lines in 3 shards"), (99, "12 molecules in 1 shard ")):
        folder = tmp_path / str(rows)
        folder.mkdir()
        assert main(["merge", str(frames(folder, unit_rows=rows)), "--out", f"{folder}/m"]) == 0
        assert f"24 conformers of {expected}" in capsys.readouterr().out
    assert "14 conformers of 7 input lines in" in outcome(finished[1])
    _, smiles = fake_run(tmp_path, input_format="smiles")
    assert "14 conformers of 7 molecules in" in outcome(smiles)


def test_what_is_missing_is_named(parts, tmp_path):
    with pytest.raises(UserError, match=r"6 of 10 work units .*\(1 to 2, 4 to 5, 7 to 8\)"):
        merge(parts[:1], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_refusals(parts, tmp_path):
    with pytest.raises(UserError, match="one of the folders"):
        merge(parts, parts[0])
    other, _ = fake_run(tmp_path, "C\n")
    with pytest.raises(UserError, match=r"not parts of one run.*\n.*\n +input.sha256"):
        merge([*parts, other], tmp_path / "out")
    damaged = tmp_path / "damaged"
    shutil.copytree(parts[1], damaged)
    flip(shards.shards(damaged)[0], 5000)
    with pytest.raises(UserError, match="damaged"):
        merge([parts[0], damaged, parts[2]], tmp_path / "out")


def test_a_unit_that_differs_in_two_folders(parts, tmp_path):
    twin = tmp_path / "twin"
    shutil.copytree(parts[0], twin)
    path = shards.shards(twin)[1]
    attributes, rows, drops = shards.read_whole(path)
    assert len(rows["line"])
    plain = {
        name: getattr(value, "item", lambda v=value: v)() for name, value in attributes.items()
    }
    shards.write_shard(twin, shards.unit_of(path), [], drops, plain)
    with pytest.raises(UserError, match=r"shard-00003.h5 differ"):
        merge([*parts, twin], tmp_path / "out")


def test_where_a_share_goes(tmp_path):
    assert part_name(Share(3, 16)) == "part-03-of-16"
    assert Generate(out=tmp_path, shard="3/16")._folder(Share(3, 16)) == tmp_path / "part-03-of-16"
    assert Generate(out=tmp_path, shard="0/1")._folder(Share(0, 1)) == tmp_path / "part-0-of-1"
    for text in ("3/16", "0/1"):
        with pytest.raises(UserError, match="needs --out"):
            Generate(shard=text)._folder(Share.parse(text))
