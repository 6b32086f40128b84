"""Pictures of a run: they take the place of older ones when they are whole."""

import pytest

from schnet.errors import UserError
from schnet.runs import plots
from schnet.runs.logs import EpochLine
from schnet.samples.targets import target_of


def test_on_a_full_disk_the_old_picture_stays(tmp_path, monkeypatch):
    def fsync(descriptor):
        raise OSError(28, "No space left on device")

    path = tmp_path / "learning_curve.png"
    lines = [EpochLine(n, n, 1e-3, 1.0 / n, 1.0 / n, 2.0 / n, 1.0, 9.0, 1.0) for n in (1, 2)]
    path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fsync)
        with pytest.raises(UserError, match="No space left on device; make room"):
            plots.learning_curve(path, lines, target_of("gap"), best_epoch=2)
    assert path.read_text() == "old"
    plots.learning_curve(path, lines, target_of("gap"), best_epoch=2)
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert list(tmp_path.iterdir()) == [path]
