"""Rows of different code are not mixed unless somebody asks, and then it is said."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runs import MANY, fake_run

from qm1b.audit.verify import as_text, verify
from qm1b.cli import main
from qm1b.convert.merge import merge
from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.folder.manifest import sources
from qm1b.folder.manifest import versions as versions_module
from qm1b.folder.manifest.manifest import shard_attributes
from qm1b.folder.manifest.work_units import Share
from qm1b.process.display import Display
from qm1b.report.card.facts import gather
from qm1b.settings import fingerprint_of

ROOT = Path(__file__).parents[3]
LOOP = ROOT / "pyscf_ipu" / "scf" / "cycle.py"


def again(out, **changes):
    return fake_run(out.parent, MANY, **changes)


def older(folder):
    """Make a folder one of a version that knew neither `sources` nor `first_cycles`."""
    there = shards.read_manifest(folder)
    settings = {k: v for k, v in there.settings.items() if k != "first_cycles"}
    versions = {k: v for k, v in there.versions.items() if k != "sources"}
    fingerprint = fingerprint_of(settings)
    before = replace(there, settings=settings, versions=versions, fingerprint=fingerprint)
    shards.write_manifest(folder, before)
    for path in shards.shards(folder):
        unit = shards.read_unit(path)
        said = shard_attributes(before.to_dict(), unit.index)
        shards.write_shard(folder, unit.index, unit.rows, drops=unit.drops, attributes=said)
    return folder


def hashes(folder):
    """What each shard says of its code."""
    said = (json.loads(shards.read_attributes(p)["versions"]) for p in shards.shards(folder))
    return [versions.get("sources") for versions in said]


@pytest.fixture
def said(monkeypatch):
    """What runs say."""
    found = []
    monkeypatch.setattr(Display, "say", lambda self, text: found.append(text))
    return found


@pytest.fixture
def other_code(monkeypatch):
    """A constant of the SCF is another."""

    def text_of(path):
        text = path.read_text()
        return text.replace("\nAUFBAU_ERROR = ", "\nAUFBAU_ERROR = 2 * ") if path == LOOP else text

    homes = {name: ROOT / name for name in sources.PACKAGES}
    found = sources.digest(homes, "", text_of)
    monkeypatch.setattr(versions_module, "sources", lambda *_: found)
    return found


def test_other_code_does_not_go_on_unless_asked(whole, partial, other_code, said):
    shards.shards(partial)[0].unlink()
    before = hashes(whole)[0]
    with pytest.raises(UserError, match=rf"versions(.|\n)*\n +sources +{before} +{other_code}$"):
        again(partial)
    again(partial, other_versions=True)
    assert same.differences(whole, partial) == []  # in truth, nothing was different
    assert hashes(partial) == [other_code] + [before] * 9
    assert gather(partial).versions["sources"] == f"{other_code}, {before}"
    assert any("other software" in text and f"{before}  {other_code}" in text for text in said)


def test_verify_names_the_code(partial, other_code):
    shards.shards(partial)[0].unlink()
    again(partial, other_versions=True)
    found = verify(partial, 0)
    assert set(found.sources) == set(hashes(partial))
    assert f"{other_code} (this program), " in as_text(found)
    assert "rows of different code are mixed" in as_text(found)


def test_a_folder_of_an_earlier_version_goes_on_only_when_asked(whole, partial, said):
    folder = older(partial)
    shards.shards(folder)[0].unlink()
    with pytest.raises(UserError, match=r"--allow-other-versions(.|\n)*\n +sources +- +\w{16}$"):
        again(folder)
    again(folder, other_versions=True)
    assert hashes(folder) == hashes(whole)[:1] + [None] * 9
    again(folder, other_versions=True)  # a second time, too
    assert [text for text in said if "other software" in text]


def test_such_a_folder_is_read_exported_and_merged(partial, tmp_path, capsys):
    folder = older(partial)
    assert main(["export", str(folder), str(tmp_path / "all.parquet"), "--all"]) == 0
    assert main(["import", str(tmp_path / "all.parquet"), "--out", str(tmp_path / "back")]) == 0
    assert same.differences(folder, tmp_path / "back") == []
    assert main(["info", str(folder)]) == 0
    assert main(["merge", str(folder), "--out", str(tmp_path / "merged")]) == 0
    assert same.differences(folder, tmp_path / "merged") == []


def test_parts_of_different_code_are_merged_only_when_asked(tmp_path, request, capsys):
    parts = []
    for index in range(2):
        if index:
            request.getfixturevalue("other_code")
        (tmp_path / str(index)).mkdir()
        parts.append(fake_run(tmp_path / str(index), MANY, share=Share(index, 2))[0])
    with pytest.raises(UserError, match=r"not parts of one run(.|\n)*sources"):
        merge(parts, tmp_path / "out")
    arguments = [*map(str, parts), "--out", str(tmp_path / "out"), "--allow-other-versions"]
    assert main(["merge", *arguments]) == 0
    assert "different software:\n  field" in capsys.readouterr().out
