"""The padding of a run: chosen when it begins, and kept."""

import json
import os
import shutil

import pytest
from fake_runs import MANY, fake_run, seal_again, settings

from qm1b.cli import main
from qm1b.commands.generate import Generate, run_settings
from qm1b.convert.merge import merge
from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.folder.manifest.work_units import Share
from qm1b.process.display import Display
from qm1b.run.generate import Run, generate, with_padding


def chosen(folder):
    return shards.read_manifest(folder).settings.get("padding", "fine")


def programs(folder):
    return len(shards.read_manifest(folder).runs[-1]["programs"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folders of a run that chose its padding, the coarsest, and of one that was to be fine."""
    given = {"coarsest": None, "fine": "fine"}
    folders = {name: tmp_path_factory.mktemp(name) for name in given}
    return {name: fake_run(folders[name], MANY, padding=given[name])[0] for name in given}


@pytest.fixture
def copied(runs, tmp_path):
    """A function that copies one of these folders to where `fake_run` resumes it."""

    def copy(name):
        return shutil.copytree(runs[name], tmp_path / "out-2")

    return copy


def test_a_small_run_takes_the_coarsest_padding_and_fewer_programs(runs):
    assert {name: chosen(out) for name, out in runs.items()} == {
        "coarsest": "coarsest",
        "fine": "fine",
    }
    assert programs(runs["coarsest"]) < programs(runs["fine"])
    assert "padding" not in shards.read_manifest(runs["fine"]).settings
    found = shards.read_attributes(shards.shards(runs["coarsest"])[0])
    assert json.loads(found["settings"])["padding"] == "coarsest"


def test_lines_beyond_the_limit_do_not_count(tmp_path):
    text = "".join(f"{'C' * n}\n" for n in range(1, 6)) + "C\n" * 5000
    assert chosen(fake_run(tmp_path, text, limit=4)[0]) == "coarsest"


@pytest.mark.parametrize("taken", ["fine", "coarsest"])
@pytest.mark.parametrize("harm", ["none", "manifest", "shard", "all shards"])
def test_the_padding_of_a_folder_is_found(taken, harm, copied):
    out = copied(taken)
    found = shards.shards(out)
    if harm == "manifest":
        (out / shards.MANIFEST).unlink()
    for path in {"shard": found[:1], "all shards": found}.get(harm, []):
        os.truncate(path, 2000)
    assert with_padding(settings(), out).padding == taken
    other = {"fine": "coarsest", "coarsest": "fine"}[taken]
    assert with_padding(settings(padding=other), out).padding == other


@pytest.mark.parametrize("text", ["", "{}", '{"settings": 3}'])
def test_a_padding_that_nothing_says_is_not_chosen_anew(copied, text):
    out = copied("fine")
    (out / shards.MANIFEST).write_text(text)
    for path in shards.shards(out):
        os.truncate(path, 2000)
    with pytest.raises(UserError, match=r"shard-00000.h5 is damaged.*manifest.*give --padding"):
        with_padding(settings(), out)
    assert with_padding(settings(padding="fine"), out).padding == "fine"


@pytest.mark.parametrize("said", [None, "no JSON", "[" * 50_000, '{"padding": "wide"}', 3], ids=str)
def test_a_shard_that_says_no_settings_is_passed_over(copied, said):
    out = copied("coarsest")
    (out / shards.MANIFEST).unlink()
    (first, *others) = shards.shards(out)
    seal_again(
        first,
        lambda file: (
            file.attrs.pop("settings")
            if said is None
            else (file.attrs.__setitem__("settings", said))
        ),
    )
    assert shards.settings_of_run(out)["padding"] == "coarsest"
    for path in others:
        path.unlink()
    with pytest.raises(UserError, match=r"shard-00000.h5.*settings"):
        shards.settings_of_run(out)


def test_a_folder_without_shards_holds_no_choice(copied, tmp_path):
    out = copied("fine")
    for path in shards.shards(out):
        path.unlink()
    for folder in (out, tmp_path / "none"):
        assert with_padding(settings(), folder).padding is None


def test_a_resumed_run_keeps_its_padding(runs, copied, tmp_path):
    out = copied("fine")
    shards.shards(out)[-1].unlink()
    fake_run(tmp_path, MANY)
    assert chosen(out) == "fine"
    assert same.differences(runs["fine"], out) == []


def test_another_padding_is_another_run(copied, tmp_path):
    copied("coarsest")
    with pytest.raises(UserError, match=r"field +there +here\n +padding +coarsest +-$"):
        fake_run(tmp_path, MANY, padding="fine")


def test_shares_have_the_padding_of_the_whole(runs, tmp_path):
    parts = []
    for i in range(2):
        folder = tmp_path / str(i)
        folder.mkdir()
        parts.append(fake_run(folder, MANY, share=Share(i, 2))[0])
    assert [chosen(part) for part in parts] == ["coarsest"] * 2
    merge(parts, tmp_path / "merged")
    assert same.differences(runs["coarsest"], tmp_path / "merged") == []


class Watch(Display):
    """Remembers how many programs a run was known to need."""

    def __init__(self):
        super().__init__()
        self.known, self.said = [], []

    def say(self, text):
        self.said.append(text)

    def update(self, stats):
        self.known.append(stats.pending_programs + len(stats.compiles))


def test_the_time_left_counts_programs_of_the_padding(tmp_path):
    source = tmp_path / "a.smi"
    source.write_text("".join(f"{'C' * n}\n" for n in range(1, 14)))
    most = {}
    for taken in ("fine", "coarsest"):
        watch, out = Watch(), tmp_path / taken
        generate(Run(source, out, settings(padding=taken), 1, "fake_engine:Slow"), watch)
        most[taken] = max(watch.known)
        assert programs(out) == most[taken]
        assert ("coarsest padding" in watch.said[0]) == (taken == "coarsest")
    assert most["coarsest"] < most["fine"]


def test_the_flag_and_what_info_says(runs, capsys):
    assert run_settings(Generate()).padding is None
    assert run_settings(Generate(padding="coarsest")).coarse == 2
    for taken in ("fine", "coarsest"):
        assert main(["info", str(runs[taken])]) == 0
        (line,) = [x for x in capsys.readouterr().out.splitlines() if "padding" in x]
        assert line.split() == ["padding", taken]
