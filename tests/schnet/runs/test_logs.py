"""TensorBoard's files: complete, and dispensable."""

import math
import struct
from io import BufferedWriter, FileIO

import pytest
from tensorboardX import record_writer
from tensorboardX.proto.event_pb2 import Event, SessionLog

from schnet.runs import logs
from schnet.runs.logs import EpochLine

LINES = [EpochLine(n, 5 * n, 1e-3, 0.5 / n, 9.0, math.nan, 1.0, 100.0, 2.0 * n) for n in (1, 2, 3)]


def events(folder):
    """The events in a folder, file after file; a record has a length and two checksums."""
    found = []
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        while data:
            (size,) = struct.unpack("Q", data[:8])
            found.append(Event.FromString(data[12 : 12 + size]))
            data = data[16 + size :]
    return found


def test_every_epoch_is_on_disk_when_it_ends(tmp_path):
    folder = tmp_path / "tensorboard"
    with logs.tensorboard(folder, 0, "meV") as add:
        for n, line in enumerate(LINES, 1):
            add(line)
            assert max(event.step for event in events(folder)) == n
    first, *rest = events(folder)
    assert first.file_version == "brain.Event:2"
    values = {(e.step, v.tag): v.simple_value for e in rest for v in e.summary.value}
    assert values[2, "loss/train"] == pytest.approx(0.25)
    assert values[3, "mae_meV/train"] == 9.0
    assert not [tag for _, tag in values if tag.endswith("/valid")]  # none of these epochs has it
    assert all(event.wall_time > 1e9 for event in rest)


def test_a_resumed_training_hides_what_came_after_its_checkpoint(tmp_path):
    with logs.tensorboard(tmp_path, 2, "meV") as add:
        add(LINES[2])
    again = [event for event in events(tmp_path) if event.session_log.status == SessionLog.START]
    assert [event.step for event in again] == [3]


@pytest.mark.parametrize("when", ["opening", "writing"])
def test_a_full_disk_is_said_once_and_the_training_goes_on(tmp_path, capsys, monkeypatch, when):
    folder = tmp_path / "tensorboard"
    if when == "opening":
        folder.write_text("a file")
    else:
        monkeypatch.setattr(
            record_writer, "open_file", lambda _: BufferedWriter(FileIO("/dev/full", "w"))
        )
    with logs.tensorboard(folder, 0, "meV") as add:
        for line in LINES:
            add(line)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    reason = "File exists" if when == "opening" else "No space left on device"
    assert f"goes on without them: TensorBoard's files in {folder} cannot be written" in said
    assert reason in said
