"""Extended XYZ: as ASE reads it, and what is left out or refused."""

import gzip
import io

import numpy as np
import pytest
from ase import Atoms
from ase.io import read, write
from ase.units import Bohr, Hartree
from packs import QM9
from source_files import WATER, whole

from pyscf_ipu.molecule.molecule import Molecule
from schnet.errors import UserError
from schnet.sources import open_source, xyz


@pytest.fixture(scope="module")
def frames():
    return read(QM9, ":", format="extxyz")


@pytest.mark.parametrize(
    ("target", "key", "atomic"),
    [
        ("gap", "gap_au", 1.0),
        ("energy", "U0_au", 1.0),
        ("homo", "homo_au", 1.0),
        ("lumo", "lumo_au", 1.0),
        ("dipole_norm", "dipole_debye", 2.541746473),
    ],
)
def test_extended_xyz_as_ase_reads_it(frames, target, key, atomic):
    source = open_source(QM9, target)
    assert source.sizes == [60]
    assert source.units == {"positions": "angstrom", key: "hartree" if atomic == 1 else "debye"}
    found = whole(source)
    assert len(found) == len(frames) == 60
    for row, atoms in zip(found, frames, strict=True):
        np.testing.assert_array_equal(row.numbers, atoms.numbers)
        np.testing.assert_allclose(row.positions_bohr, atoms.positions / Bohr, rtol=1e-6, atol=1e-6)
        assert row.target == pytest.approx(atoms.info[key] / atomic, rel=1e-12)
        assert row.smiles == atoms.info["smiles"]
    assert found.keys.tolist() == [f"frame {i}" for i in range(1, 61)]
    assert not source.dropped


def test_parts_and_packing_change_nothing(monkeypatch, tmp_path):
    plain = tmp_path / "a.extxyz"
    # Empty lines between frames and the line ends of another system.
    text = gzip.decompress(QM9.read_bytes()).replace(b"\n", b"\r\n") + b"\r\n\r\n"
    plain.write_bytes(text)
    expected = whole(open_source(QM9, "gap"))
    monkeypatch.setattr(xyz, "PART_FRAMES", 17)
    monkeypatch.setattr(xyz, "IN_MEMORY_BYTES", 1 << 10)  # the unpacked file is on the disk
    for path in (QM9, plain):
        source = open_source(path, "gap")
        assert source.sizes == [17, 17, 17, 9]
        assert source.part(3).keys[0] == "frame 52"
        for row, other in zip(whole(source), expected, strict=True):
            np.testing.assert_array_equal(row.positions_bohr, other.positions_bohr)
            assert (row.target, row.smiles, row.key) == (other.target, other.smiles, other.key)


def test_text_that_is_easily_misread(tmp_path):
    """SMILES that look like a boolean, and backslashes, as ASE writes them."""
    path = tmp_path / "a.extxyz"
    rows = []
    for smiles in ("F", r"F/C=C\F", 'a"b', "C=C"):
        atoms = Atoms("HF", [[0, 0, 0], [0, 0, 1]])
        atoms.info |= {"smiles": smiles, "gap_eV": 5.0}
        rows.append(atoms)
    write(path, rows)
    found = whole(open_source(path, "gap"))
    assert found.smiles.tolist() == [r.info["smiles"] for r in rows]
    assert found.targets == pytest.approx(5.0 / Hartree)


def test_dropped_frames_of_extended_xyz(tmp_path):
    path = tmp_path / "a.xyz"
    comments = [
        "gap_au=0.5",
        'gap_au=0.5 pbc="T T T"',
        'gap_au=0.5 Lattice="9 0 0 0 9 0 0 0 9"',
        'gap_au=0.5 Lattice="9 0 0 0 9 0 0 0 9" pbc="F F F"',
        "homo_au=0.5",
        "gap_au=nan",
    ]
    text = "".join(map(WATER.format, comments))
    path.write_text(text + WATER.format("gap_au=0.5").replace("0.76", "nan", 1))
    source = open_source(path, "gap")
    assert whole(source).keys.tolist() == ["frame 1", "frame 4"]
    assert source.sizes == [7]
    reasons = {"periodic": 2, "no gap_au": 1, "target not finite": 1, "position not finite": 1}
    assert source.dropped == reasons
    whole(source)
    assert source.dropped == reasons  # reading again counts nothing twice


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("molecules\n", "frame 1: line 1: 'molecules' stands where a number of"),
        (WATER.format("gap_au=1") + "x\n", "frame 2: line 6: 'x' stands where a number of atoms"),
        (
            WATER.format("gap_au=1") + "3\n\nO 0 0 0\n",
            "frame 2: line 6: the frame ends after 1 of",
        ),
        (WATER.format("gap_au=1").replace("0.76", "zero", 1), "frame 1: atom 2 is 'H 0.0 zero"),
        (WATER.format("gap_au=wide"), "frame 1: gap_au is 'wide'; it must be a number"),
        (WATER.format("gap=1"), "'gap' does not say its unit; give --unit, one of au, hartree"),
        (WATER.format("U0_au=1"), "no gap .* has Properties, smiles, U0_au: name one with --key"),
    ],
)
def test_bad_frames_are_named(tmp_path, text, message):
    path = tmp_path / "bad.extxyz"
    path.write_text(text)
    with pytest.raises(UserError, match=f"bad.extxyz.*{message}"):
        whole(open_source(path, "gap"))


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("3\n\nO 0 0 0\n", "the frame ends after 1 of 3 atoms"),
        ("x\n", "'x' stands where a number of atoms should"),
    ],
)
@pytest.mark.parametrize("frames", [2, 3])
def test_a_prediction_of_a_torn_file_ends_with_the_reason(
    rest, reason, frames, tmp_path, monkeypatch
):
    monkeypatch.setattr(xyz, "PART_FRAMES", 2)  # three frames have two parts
    path = tmp_path / "torn.xyz"
    path.write_text(frames * WATER.format("") + rest)
    source = open_source(path, None)
    found = whole(source)
    assert sum(source.sizes) == len(found) == frames + 1
    assert [len(row.numbers) for row in found] == frames * [3] + [0]
    assert [bool(row.reason) for row in found] == frames * [False] + [True]
    assert reason in found[frames].reason
    assert found.keys[frames] == f"frame {frames + 1}"
    path.write_text(rest)
    with pytest.raises(UserError, match=f"torn.xyz, frame 1: .*{reason}"):
        open_source(path, None)


def test_a_packed_file_that_was_cut(tmp_path):
    path = tmp_path / "cut.extxyz.gz"
    path.write_bytes(QM9.read_bytes()[:-2000])
    with pytest.raises(UserError, match=r"cut.extxyz.gz cannot be read"):
        open_source(path, "gap")


def test_frames_without_smiles_are_known_by_their_bonds(tmp_path):
    path = tmp_path / "a.xyz"
    frames = []
    for smiles, seed in [("CCO", 1), ("CCO", 2), ("COC", 1), ("O", 0), ("OCC", 3)]:
        m = Molecule.from_smiles(smiles, seed)
        xyz_text = io.StringIO()
        atoms = Atoms(m.numbers, np.asarray(m.positions) * Bohr, info={"gap_ev": 1.0})
        write(xyz_text, atoms, format="extxyz")
        frames.append(xyz_text.getvalue())
    path.write_text("".join(frames))
    found = whole(open_source(path, "gap"))
    first, second, ether, water, third = found.molecules.tolist()
    assert first == second == third
    assert len({first, ether, water}) == 3
    assert found.smiles.tolist() == [""] * 5


def test_a_line_without_end_is_refused(tmp_path):
    path = tmp_path / "a.xyz.gz"
    path.write_bytes(gzip.compress(f"3\n\n{WATER}3\n{'x' * 300_000}\n{WATER}".encode()))
    for target in ("energy", None):
        with pytest.raises(UserError, match=r"a\.xyz\.gz: line 9 has more than 262144 characters"):
            open_source(path, target)


def test_a_line_of_smiles_without_end_has_its_reason(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smiles\nC\n" + "C" * 300_000 + "\nO\n\n" + "C" * 9000)
    samples, _ = open_source(path, None).read_part(0)
    assert samples.reasons.tolist() == [
        "",
        "too_long: a line of more than 262144 characters",
        "",
        "too_long: more than 2000 characters",
    ]
    assert samples.keys.tolist() == ["line 1", "line 2", "line 3", "line 5"]
