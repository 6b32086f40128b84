"""What every column that a run may leave out has to pass: resume, repair and merge."""

import shutil

import pytest
from fake_runs import MANY, fake_run, flip

from qm1b.convert.merge import merge
from qm1b.errors import UserError
from qm1b.folder import same, shards
from qm1b.folder.manifest.work_units import Share


def check_resumed_with_the_same_choice_only(folder, tmp_path, setting, **chosen):
    """`setting` is the line of the error that names what differs."""
    for name in ("same", "other"):
        shutil.copytree(folder, tmp_path / name / "out-2")
        shards.shards(tmp_path / name / "out-2")[3].unlink()
    out, _ = fake_run(tmp_path / "same", MANY, **chosen)
    assert same.differences(folder, out) == []
    with pytest.raises(UserError, match=rf"holds another run; .*\n.*\n +{setting}"):
        fake_run(tmp_path / "other", MANY)


def check_repaired(folder, tmp_path, **chosen):
    """A damaged shard comes back whole."""
    shutil.copytree(folder, tmp_path / "out-2")
    flip(shards.shards(tmp_path / "out-2")[1], 5000)
    out, _ = fake_run(tmp_path, MANY, **chosen)
    assert same.differences(folder, out) == []


def check_merged(folder, without, tmp_path, setting, column, **chosen):
    """Shares become the whole, and not with one of a run `without` the column."""
    parts = []
    for i in range(2):
        (tmp_path / str(i)).mkdir()
        parts.append(fake_run(tmp_path / str(i), MANY, share=Share(i, 2), **chosen)[0])
    merge(parts, tmp_path / "merged")
    assert same.differences(folder, tmp_path / "merged") == []
    with pytest.raises(UserError, match=rf"(?s)not parts of one run.*\n +{setting}"):
        merge([parts[0], without], tmp_path / "mixed")
    assert f"{column} is in one of them only" in " ".join(same.differences(without, folder))
