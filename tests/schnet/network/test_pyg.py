"""State dicts as files: what is damaged, or of another network, is refused in a sentence."""

import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from schnet.errors import UserError
from schnet.network import pyg

WEIGHTS = Path(__file__).parents[1] / "data" / "pyg_schnet.npz"
PREFIX = "weights/"


@pytest.fixture(scope="module")
def weights():
    found = pyg.read(WEIGHTS)
    return {k.removeprefix(PREFIX): v for k, v in found.items() if k.startswith(PREFIX)}


def damaged(data, rng):
    """A file cut anywhere, or with flipped bits, most of them in the directory of the zip."""
    data = bytearray(data)
    if rng.random() < 0.2:
        return data[: rng.randrange(len(data))]
    last = rng.choice([len(data), 3000])
    for _ in range(rng.choice([1, 1, 3, 10])):
        data[-1 - rng.randrange(last)] ^= 1 << rng.randrange(8)
    return data


def test_a_damaged_file_ends_in_a_sentence(tmp_path, weights):
    whole, bad = tmp_path / "net.npz", tmp_path / "bad.npz"
    np.savez_compressed(whole, **weights)
    rng, refused = random.Random(0), 0
    for _ in range(300):
        bad.write_bytes(damaged(whole.read_bytes(), rng))
        try:
            pyg.convert(pyg.read(bad), "sum", 32)
        except UserError:
            refused += 1
    assert refused > 200


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("embedding.weight", np.ravel),
        ("embedding.weight", lambda a: a[:50]),
        ("embedding.weight", lambda a: a[:, :0]),
        ("distance_expansion.offset", lambda a: a[:0]),
        ("distance_expansion.offset", lambda a: a.astype(str)),
        ("lin1.weight", np.transpose),
        ("lin1.weight", lambda a: a * np.nan),
        ("lin2.bias", lambda a: a.astype(complex)),
        ("interactions.0.lin.bias", lambda a: a[:-1]),
    ],
)
def test_weights_of_other_sizes_or_kinds_are_refused(weights, name, change):
    with pytest.raises(UserError, match=r"must be \d-dimensional|have the sizes|--|needs"):
        pyg.convert(weights | {name: change(weights[name])}, "sum", 32)


@pytest.mark.parametrize("name", ["interactions.x.lin.bias", "interactions.", "interactions.9" * 9])
def test_names_of_no_block_do_not_count(weights, name):
    assert pyg.convert(weights | {name: np.zeros(3)}, "sum", 32).config.interactions == 2


def test_a_file_that_unpacks_to_more_than_any_network_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(pyg, "MOST_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(1 << 18, np.float64))
    with pytest.raises(UserError, match="unpacks to more than 1 MiB"):
        pyg.read(tmp_path / "bomb.npz")
    with zipfile.ZipFile(tmp_path / "lies.npz", "w") as file:
        file.writestr(
            "a.npy",
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, "
            b"'shape': (1000000000000,), }".ljust(118)
            + b"\n",
        )
    with pytest.raises(UserError, match="is not a state_dict"):
        pyg.read(tmp_path / "lies.npz")


@pytest.mark.parametrize("name", ["nothing.npz", "."])
def test_what_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(UserError, match="does not exist or is no file"):
        pyg.read(tmp_path / name)
