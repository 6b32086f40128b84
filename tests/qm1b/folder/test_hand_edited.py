"""A manifest that was edited: wrong parts are one sentence, and shards are believed, not it."""

import copy
import json
import shutil
from itertools import product

import pytest
from fake_runs import LINES, conformer, fake_run
from fake_runs import row as row_of

from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest.manifest import Manifest
from qm1b.folder.shard_folder import ShardFolder
from qm1b.report.estimate import rate_of
from qm1b.report.info import describe

pytestmark = pytest.mark.usefixtures("blank_pictures")

LOST = object()
VALUES = (LOST, None, -1, 10**30, 1.5, "", [3], {"a": 1})
FREE = {"schema", "shard", "versions", "runs", "timing", "input.name", "status"}
"""Parts that shards do not have, or that may differ between them."""

PLAUSIBLE = {
    "settings.basis": "def2-svp",
    "settings.xc": "pbe",
    "settings.precision": "float64",
    "settings.grid_level": 3,
    "settings.seed": 2,
    "settings.max_cycles": 51,
    "settings.conformers": 3,
    "functional_definition": "Hartree-Fock",
    "fingerprint": "0123456789abcdef",
    "input.sha256": "0" * 64,
    "input.lines": 15,
    "unit_lines": 5,
    "shard": "0/2",
}


def places(value, at=()):
    """The path of every part of a JSON value."""
    parts = value.items() if isinstance(value, dict) else ()
    for key, inner in enumerate(value) if isinstance(value, list) else parts:
        yield (*at, key)
        yield from places(inner, (*at, key))


def changed(values, place, value):
    copied = copy.deepcopy(values)
    inner = copied
    for key in place[:-1]:
        inner = inner[key]
    if value is LOST:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return copied


def said_of(folder):
    """What `qm1b info` prints, or the sentence that refuses."""
    try:
        return describe(folder), ""
    except UserError as error:
        return "", str(error)


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished[0], tmp_path / "run")


@pytest.fixture
def write(folder):
    path = folder / shards.MANIFEST
    return lambda values: path.write_text(json.dumps(values))


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.long)])
def test_any_part_of_any_kind(folder, write, every):
    """Every part of a manifest, replaced by values of every kind, and deleted."""
    real = json.loads((folder / shards.MANIFEST).read_text())
    real["runs"] = [real["runs"][0] | {"programs": real["runs"][0]["programs"][:1]}]
    real["versions"] = real["runs"][0]["versions"] = {"jax": real["versions"]["jax"]}
    before = describe(folder)
    trials = refused = 0
    for place, value in [*product(places(real), VALUES)][::every]:
        write(changed(real, place, value))
        trials += 1
        after, error = said_of(folder)
        names = {".".join(map(str, place[:n])) for n in (1, 2)}
        assert error or after == before or names & FREE, (place, value)
        assert not error or ("manifest" in error and "\n" not in error), (place, value)
        refused += bool(error)
    assert trials > 350 // every
    assert refused > 250 // every


@pytest.mark.parametrize("name", PLAUSIBLE)
def test_what_all_shards_contradict_is_not_believed(folder, write, tmp_path, capsys, name):
    real = json.loads((folder / shards.MANIFEST).read_text())
    *above, last = name.split(".")
    was = (real[above[0]] if above else real)[last]
    write(changed(real, (*above, last), PLAUSIBLE[name]))
    for command in (
        ["info", folder],
        ["export", folder, tmp_path / "a.parquet"],
        ["card", folder, "--out", tmp_path / "card"],
        ["split", folder],
        ["head", folder],
    ):
        assert main([*map(str, command)]) == 2, command
        errors = capsys.readouterr().err
        assert "the manifest" in errors
        assert "shard-0000" in errors
        assert "generate" in errors
        assert str(PLAUSIBLE[name])[:50] in errors
        assert name in ("unit_lines", "shard") or str(was)[:50] in errors
    assert not list(tmp_path.glob("a.*"))
    if name not in ("unit_lines", "shard"):  # which a merge does not believe
        assert main(["merge", str(folder), "--out", str(tmp_path / "merged")]) == 2
        assert "the manifest contradicts" in capsys.readouterr().err


def test_every_shard_is_compared(folder, tmp_path):
    """Not only the first: the last one was computed at another level."""
    attributes = shards.read_attributes(shards.shard_path(folder, 3))
    other = json.loads(attributes["settings"]) | {"basis": "6-31g"}
    attributes = {k: getattr(v, "item", lambda v=v: v)() for k, v in attributes.items()}
    row = row_of(conformer(13))
    shards.write_shard(folder, 3, [row], [], attributes | {"settings": json.dumps(other)})
    for use in (
        lambda: export(folder, tmp_path / "a.parquet"),
        lambda: list(ShardFolder(folder).batches()),
    ):
        with pytest.raises(UserError, match=r"contradicts shard-00003.h5.*basis is sto-3g.*6-31g"):
            use()


def test_a_run_writes_a_new_manifest(finished, tmp_path):
    out = shutil.copytree(finished[0], tmp_path / "out-2")
    path = out / shards.MANIFEST
    good = json.loads(path.read_text())
    places = list(PLAUSIBLE.items())
    for name, value in [*places, ("settings.basis", -1), ("counts", None)]:
        path.write_text(json.dumps(changed(good, tuple(name.split(".")), value)))
        fake_run(tmp_path, LINES, factory="fake_engine:only_in_the_parent")
        written = json.loads(path.read_text())
        for part in ("settings", "unit_lines", "input", "counts", "status", "fingerprint"):
            assert written[part] == good[part]


def test_counts_of_a_run_that_the_shards_do_not_hold(folder):
    record = shards.read_manifest(folder)
    run = record.runs[0] | {"rows": 10**9}
    values = Manifest.to_dict(record) | {"runs": [run]}
    (folder / shards.MANIFEST).write_text(json.dumps(values))
    with pytest.raises(UserError, match=r"gave 1000000000 rows, but the shards hold 14"):
        rate_of(folder)


@pytest.mark.parametrize("text", ["[" * 10**5, '{"input": 1e999}', "9" * 5000, "\udcff", "NaN"])
def test_text_that_is_hardly_json(folder, capsys, text):
    (folder / shards.MANIFEST).write_text(text, errors="surrogateescape")
    assert main(["info", str(folder)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_manifest_without_shards_may_say_anything(folder, write, tmp_path, capsys):
    """A list of all its units would fill the memory."""
    real = json.loads((folder / shards.MANIFEST).read_text())
    for path in shards.shards(folder):
        path.unlink()
    write(real | {"input": real["input"] | {"lines": 2**61}})
    for command in (["card", folder, "--out", tmp_path / "card"], ["verify", folder]):
        assert main([*map(str, command)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
