"""Shards and manifests: whole or absent, with a unit on every dataset."""

import hashlib
import os

import h5py
import numpy as np
import pytest
from fake_runs import conformer, row

from qm1b.errors import UserError
from qm1b.folder import checksum, shards
from qm1b.rows.schema import Drop
from qm1b.storage import files


def rows():
    water = np.array([8, 1, 1], np.uint8)
    first = conformer(1, water, np.arange(9.0).reshape(3, 3), smiles="O", seed=5)
    second = conformer(2, positions=np.ones((1, 3)), seed=6)
    good = row(
        first, n_ao=7, energy=-75.3, homo=-0.4, lumo=0.6, energy_std=1e-6, dipole=(0.0, 0.0, 0.7),
        converged=True, cycles=9, commutator_norm=1e-5, mo_energy=(-20.0, -0.4),
    )  # fmt: skip
    return [good, row(second, "error: lost")]


def test_round_trip_and_units(tmp_path):
    drops = [Drop(3, "C\0", "unparsable", "d\u00e9tail \udcff")]
    path = shards.write_shard(
        tmp_path, 0, rows(), drops, {"fingerprint": "f", "settings": {"a": 1}}
    )
    shard = shards.read_shard(path)
    assert shard["smiles"].tolist() == ["O", "[He]"]
    assert shard["energy"][0] == -75.3
    assert np.isnan(shard["energy"][1])
    assert shard["atom_offset"].tolist() == [0, 3, 4]
    assert shard["positions"].shape == (4, 3)
    assert shard["orbital_offset"].tolist() == [0, 2, 2]
    assert shards.read_drops(path)[0].reason == "unparsable"
    assert shards.read_attributes(path)["fingerprint"] == "f"
    with h5py.File(path) as file:
        for group in file.values():
            for data in group.values():
                assert data.attrs["units"]
                assert data.attrs["description"]
    assert [p.name for p in tmp_path.iterdir()] == ["shard-00000.h5"]


def test_empty_shard(tmp_path):
    shard = shards.read_shard(shards.write_shard(tmp_path, 3, [], [], {}))
    assert shard["positions"].shape == (0, 3)
    assert shard["atom_offset"].tolist() == [0]


def test_damage_is_noticed(tmp_path):
    path = shards.write_shard(tmp_path, 0, rows(), [], {})
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in (0, 60, checksum.BLOCK - 1, checksum.BLOCK, *rng.integers(len(whole), size=40)):
        changed = bytearray(whole)
        changed[position] ^= 1 << rng.integers(8)
        path.write_bytes(changed)
        with pytest.raises(checksum.Damaged, match="damaged"):
            shards.read_shard(path)
    for size in (0, 100, checksum.BLOCK, len(whole) // 2, len(whole) - 1, len(whole) + 1):
        path.write_bytes(whole)
        os.truncate(path, size)
        with pytest.raises(checksum.Damaged, match="damaged"):
            shards.read_drops(path)


def test_the_checksum_is_sha256_of_what_follows_the_block(tmp_path):
    data = shards.write_shard(tmp_path, 0, rows(), [], {}).read_bytes()
    assert hashlib.sha256(data[512:]).hexdigest().encode() in data[:512]


def test_shards_of_version_0_1_are_refused_and_not_taken_for_damaged(tmp_path):
    path = shards.shard_path(tmp_path, 0)
    h5py.File(path, "w").close()
    with pytest.raises(UserError, match="an older version") as caught:
        shards.read_shard(path)
    assert not isinstance(caught.value, checksum.Damaged)


def test_the_order_of_shards_is_that_of_their_numbers(tmp_path):
    for unit in (100_000, 2, 99_999):
        shards.write_shard(tmp_path, unit, [], [], {})
    assert [shards.unit_of(path) for path in shards.shards(tmp_path)] == [2, 99_999, 100_000]
    assert shards.unit_of(tmp_path / "shard-2.h5") == -1


def test_no_manifest(tmp_path):
    with pytest.raises(UserError, match="holds no run"):
        shards.read_manifest(tmp_path)
    with pytest.raises(UserError, match="does not exist"):
        shards.read_manifest(tmp_path / "none")


def test_a_failed_write_leaves_nothing(tmp_path):
    def write(stream):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(UserError, match="No space left"):
        files.atomic_write(tmp_path / "shard-00000.h5", write)
    assert list(tmp_path.iterdir()) == []
