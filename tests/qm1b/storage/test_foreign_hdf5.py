"""Crafted shards with a right checksum: they end in a sentence, and in little time and memory."""

import random
import subprocess
import sys

import h5py
import numpy as np
import pytest
from fake_runs import fake_run, seal_again

from qm1b.cli import main
from qm1b.errors import UserError
from qm1b.folder import checksum, shards
from qm1b.storage.foreign_hdf5 import NotOurs, check_heaps

HEAP = b"GCOL\x01\0\0\0"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out, _ = fake_run(tmp_path_factory.mktemp("run"), "O\nC\nCC\nCCl\nC[C\n", conformers=2)
    return out


@pytest.fixture
def path(whole, tmp_path):
    (first, *_) = shards.shards(whole)
    there = tmp_path / first.name
    there.write_bytes(first.read_bytes())
    (tmp_path / shards.MANIFEST).write_bytes((whole / shards.MANIFEST).read_bytes())
    return there


def sealed(path, body):
    path.write_bytes(checksum.sealed(b"\0" * checksum.BLOCK + bytes(body)))


def replaced(name, data=None, **options):
    """A dataset of the rows is another one."""

    def change(file):
        values = file[name][:] if data is None else data
        del file[name]
        file.create_dataset(name, data=values, **options)

    return change


def external(file):
    del file["rows/energy"]
    file["rows/energy"] = h5py.ExternalLink("/etc/passwd", "/rows/energy")


def group_elsewhere(file):
    del file["rows"]
    file["rows"] = h5py.ExternalLink("/dev/zero", "/rows")


def circle(file):
    del file["rows"]
    file["rows"] = h5py.SoftLink("/rows")


def outside(file):
    values = file["rows/energy"][:]
    del file["rows/energy"]
    kept = [("/etc/passwd", 0, values.nbytes)]
    file.create_dataset("rows/energy", values.shape, values.dtype, external=kept)


def virtual(file):
    rows = len(file["rows/energy"])
    del file["rows/energy"]
    layout = h5py.VirtualLayout((rows,), "f8")
    layout[:] = h5py.VirtualSource("/etc/passwd", "energy", (rows,))
    file.create_virtual_dataset("rows/energy", layout)


def huge(file):
    del file["rows/energy"]
    file.create_dataset("rows/energy", (1 << 40,), "f8")


def list_for_text(file):
    """HDF5 may crash where a text has become a list of any length."""
    del file.attrs["xc"]
    kind, space = h5py.h5t.vlen_create(h5py.h5t.NATIVE_INT8), h5py.h5s.create(h5py.h5s.SCALAR)
    h5py.h5a.create(file.id, b"xc", kind, space)


@pytest.mark.parametrize(
    "change",
    [
        external,
        group_elsewhere,
        circle,
        outside,
        virtual,
        huge,
        replaced("rows/energy", chunks=(1,), compression="gzip"),
        replaced("rows/energy", data=np.array([b"x"] * 8)),
        replaced("rows/energy", data=np.zeros((4, 2))),
        replaced("rows/smiles", data=np.zeros(4)),
        replaced("rows/energy", data=np.zeros(3)),
        replaced("rows/atom_offset", data=np.zeros(9, np.int64)),
        replaced("rows/numbers", data=np.zeros(3, np.uint8)),
        lambda file: file.create_group("rows/energy/x") if file.pop("rows/energy") else None,
        lambda file: file.attrs.__setitem__("settings", np.zeros(7)),
        lambda file: file.attrs.__setitem__("settings", "no JSON"),
        lambda file: file.attrs.__setitem__("versions", "[" * 50_000),
        list_for_text,
    ],
)
def test_what_no_run_writes_is_refused(path, change, capsys):
    seal_again(path, change)
    with pytest.raises(UserError, match=r"shard-00000\.h5"):
        shards.read_whole(path)
    for command in ("head", "verify", "info"):
        assert main([command, str(path.parent)]) == 2
        assert "shard-00000.h5" in capsys.readouterr().err


def test_a_text_that_every_row_repeats_does_not_fill_the_memory(path):
    body = bytearray(path.read_bytes()[checksum.BLOCK :])
    with h5py.File(path) as file:
        found = file["rows/smiles"]
        offset, rows = found.id.get_offset() - checksum.BLOCK, len(found)
    lengths = np.frombuffer(body[offset : offset + 16 * rows], "<u4")[::4]
    assert 0 < lengths.sum() < 100
    for row in range(rows):
        body[offset + 16 * row : offset + 16 * row + 4] = (1 << 30).to_bytes(4, "little")
    sealed(path, body)
    with pytest.raises(UserError, match="rows/smiles is of another kind, or larger than the file"):
        shards.read_whole(path)


def test_a_heap_without_end_is_refused(path):
    image = bytearray(path.read_bytes())
    check_heaps(bytes(image), checksum.BLOCK)
    heap = image.find(HEAP)
    for at, size in ((heap + 8, 1 << 60), (heap + 8, 1 << 20), (heap + 24, 1 << 50)):
        bad = image.copy()
        bad[at : at + 8] = size.to_bytes(8, "little")
        with pytest.raises(NotOurs, match="without end"):
            check_heaps(bytes(bad), checksum.BLOCK)
    free = image.copy()
    free[heap + 16 : heap + 32] = bytes(16)  # an entry that is free, of no size: HDF5 never ends
    with pytest.raises(NotOurs, match="without end"):
        check_heaps(bytes(free), checksum.BLOCK)
    sealed(path, free[checksum.BLOCK :])
    with pytest.raises(UserError, match="was made by another program"):
        shards.read_whole(path)


def test_heaps_within_each_other_are_refused(path):
    """All end at one place, so walking each of them takes the square of their number in steps."""
    image, count = path.read_bytes(), 200
    entry = bytes([1]) + bytes(7) + (16).to_bytes(8, "little")
    sizes = [(32 * left + 16).to_bytes(8, "little") for left in range(count, 0, -1)]
    heaps = b"".join(HEAP + size + entry for size in sizes) + bytes(16)
    with pytest.raises(NotOurs, match="within each other"):
        check_heaps(image + heaps, checksum.BLOCK)


@pytest.mark.parametrize("start", [0, 1024])
def test_hdf5_must_begin_where_a_run_puts_it(path, start):
    body = path.read_bytes()[checksum.BLOCK :]
    sealed(path, bytes(start) + body[8:])
    with pytest.raises(UserError, match="no HDF5 of 64 bits"):
        shards.read_whole(path)


READS = """
import os, signal, sys
from pathlib import Path
from qm1b.errors import UserError
from qm1b.folder import shards

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        code = 2
        try:
            shards.read_whole(Path(line.rstrip()))
            code = 0
        except UserError:
            code = 1
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Reads each shard in a fork of its own; forks of the tests, with JAX's threads, may hang."""


@pytest.mark.long
def test_random_damage_with_a_right_checksum(whole, tmp_path):
    """Half of the trials let an address point elsewhere in the file."""
    body = shards.shards(whole)[0].read_bytes()[checksum.BLOCK :]
    rng, path = random.Random(3), tmp_path / "shard-00000.h5"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", READS], **pipes) as reader:
        for trial in range(300):
            bad = bytearray(body)
            if trial % 2:
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            else:
                words = np.frombuffer(body[: len(body) // 8 * 8], "<u8")
                at = 8 * int(rng.choice(np.flatnonzero((words > 0) & (words < len(body)))))
                bad[at : at + 8] = (8 * rng.randrange(512)).to_bytes(8, "little")
            sealed(path, bad)
            print(path, file=reader.stdin, flush=True)
            assert reader.stdout.readline() in ("0\n", "1\n"), trial
