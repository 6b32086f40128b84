"""Sources: the same molecules from every kind of file, in atomic units, and dropped rows."""

import gzip
import io
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ase import Atoms
from ase.io import read, write
from ase.units import Bohr, Hartree
from fake_runs import fake_run
from packs import QM9
from toy_forces import toy, written

import qm1b
from pyscf_ipu.molecule.molecule import Molecule
from qm1b.convert.export import export
from schnet.errors import UserError
from schnet.samples.samples import Samples
from schnet.samples.targets import target_of
from schnet.sources import base, open_source, xyz
from schnet.sources.lookup import lookup

WATER = """3
Properties=species:S:1:pos:R:3 smiles="O" {}
O 0.0 0.0 0.1
H 0.0 0.76 -0.47
H 0.0 -0.76 -0.47
"""


def whole(source):
    return Samples.concatenate(list(source.parts()))


def same(one, other):
    """Whether rows agree: atoms and text exactly, targets to what eV columns keep."""
    for name in ("numbers", "atom_offset"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.smiles.tolist() == other.smiles.tolist()
    np.testing.assert_allclose(one.positions_bohr, other.positions_bohr, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(one.targets, other.targets, rtol=1e-7, atol=1e-7)


# Extended XYZ


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
        ("molecules\n", "frame 1: b'molecules' is not a number of atoms"),
        (WATER.format("gap_au=1") + "x\n", "frame 2: b'x' is not a number of atoms"),
        (WATER.format("gap_au=1") + "3\n\nO 0 0 0\n", "ends within frame 2"),
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


def test_a_packed_file_that_was_cut(tmp_path):
    path = tmp_path / "cut.extxyz.gz"
    path.write_bytes(QM9.read_bytes()[:-2000])
    with pytest.raises(UserError, match=r"cut.extxyz.gz cannot be unpacked"):
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


# qm1b's folders and Parquet


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in which chlorine does not converge."""
    folder = tmp_path_factory.mktemp("run")
    return fake_run(folder, "O\nC\nCCl\nCC\nCCO\n", workers=1, conformers=3)[0]


@pytest.mark.parametrize(
    "target", ["gap", "energy", "atomisation_energy", "homo", "lumo", "dipole_norm"]
)
def test_a_run_and_its_exports_give_the_same(run, tmp_path, target):
    source = open_source(run, target)
    good = [row for row in qm1b.load(run) if row["converged"]]
    assert source.dropped == {}
    found = whole(source)
    assert source.dropped == {"not converged": 3}
    assert sum(source.sizes) == len(found) + 3 == len(good) + 3
    for row, other in zip(found, good, strict=True):
        np.testing.assert_array_equal(row.positions_bohr, other["positions"])
        expected = {
            "gap": other["lumo"] - other["homo"],
            "dipole_norm": float(np.linalg.norm(other["dipole"])),
        }.get(target, other.get(target))
        assert row.target == pytest.approx(expected, rel=1e-14)
        assert row.key == f"line {other['line']} conformer {other['conformer']}"
    for name in ("a.parquet", "a.extxyz", "a.extxyz.gz"):
        export(run, tmp_path / name)
        same(whole(open_source(tmp_path / name, target)), found)
    assert open_source(tmp_path / "a.parquet", "energy").units == {"pos": "bohr", "energy": "eV"}


def test_a_prediction_takes_all_rows(run):
    source = open_source(run, None)
    found = whole(source)
    assert len(found) == sum(source.sizes)
    assert np.isnan(found.targets).all()
    assert not source.dropped
    assert np.isnan(whole(open_source(QM9, None)).targets).all()


def qm1b_table(**changes):
    """QM1B's own columns and Arrow types: water, water, methane."""
    numbers = [[8, 1, 1], [8, 1, 1], [6, 1, 1, 1, 1]]
    positions = [[0.5 * i for i in range(3 * len(z))] for z in numbers]
    columns = {
        "smile": pa.array(["O", "O", "C"]),
        "atoms": pa.array(["OHH", "OHH", "CHHHH"]),
        "z": pa.array(numbers, pa.list_(pa.uint8())),
        "energy": pa.array([-2050.0, -2049.0, -1090.0], pa.float64()),
        "homo": pa.array([-10.0, -9.5, -12.0], pa.float32()),
        "lumo": pa.array([4.0, 4.5, 6.0], pa.float32()),
        "N": pa.array([7, 7, 9], pa.uint8()),
        "std": pa.array([0.001, 0.01, 0.0], pa.float32()),
        "y": pa.array([14.0, 14.0, 18.0], pa.float64()),
        "pos": pa.array(positions, pa.list_(pa.float32())),
    }
    return pa.table({k: v for k, v in (columns | changes).items() if v is not None})


def test_qm1b_s_own_files(tmp_path):
    path = tmp_path / "part0.parquet"
    pq.write_table(qm1b_table(), path, row_group_size=2)
    source = open_source(path, "gap", unit="eV")
    assert source.sizes == [2, 1]
    found = whole(source)
    assert source.dropped == {"std of 0.01 eV or more": 1}
    assert found.targets == pytest.approx([14.0 / 27.211386245988, 18.0 / 27.211386245988])
    assert found.keys.tolist() == ["row 0", "row 2"]
    assert found[1].numbers.tolist() == [6, 1, 1, 1, 1]
    assert found[1].positions_bohr.ravel().tolist() == [0.5 * i for i in range(15)]
    with pytest.raises(UserError, match=r"part0.parquet has no dipole; --target dipole_norm needs"):
        whole(open_source(path, "dipole_norm"))
    with pytest.raises(UserError, match="--unit is 'hartree', but its column homo is in eV"):
        open_source(path, "gap", unit="hartree")
    with pytest.raises(UserError, match=r"--key is for extended XYZ; .*part0.parquet"):
        open_source(path, "gap", key="y")


def test_several_files_are_one_source(tmp_path):
    for i in range(3):
        pq.write_table(qm1b_table(), tmp_path / f"part{i}.parquet")
    folder = open_source(tmp_path, "energy")
    assert folder.sizes == [3, 3, 3]
    found = whole(folder)
    assert found.keys[2] == "part1.parquet row 0"
    assert folder.dropped == {"std of 0.01 eV or more": 3}
    files = sorted(tmp_path.glob("*.parquet"))
    assert whole(open_source(files, "energy")).keys.tolist() == found.keys.tolist()
    assert open_source(files, "energy").fingerprint() == folder.fingerprint()
    assert open_source(files[:2], "energy").fingerprint() != folder.fingerprint()
    mixed = open_source([files[0], QM9], "gap")
    assert mixed.units == {"pos": "bohr", "homo": "eV", "lumo": "eV"} | {
        "positions": "angstrom",
        "gap_au": "hartree",
    }
    assert len(whole(mixed)) == 62


def test_damaged_tables(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(qm1b_table(pos=pa.array([[0.0] * 9] * 3, pa.list_(pa.float32()))), path)
    with pytest.raises(UserError, match=r"a.parquet is damaged: part 0 has 11 .*\(z\) but 9 pos"):
        whole(open_source(path, "gap"))
    pq.write_table(qm1b_table(lumo=None), path)
    with pytest.raises(UserError, match=r"a.parquet has no lumo; --target gap needs homo and lumo"):
        whole(open_source(path, "gap"))
    pq.write_table(qm1b_table(), path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match=r"a.parquet is not a whole Parquet file"):
        open_source(path, "gap")


def test_suspect_rows_are_left_out(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(qm1b_table(suspect=pa.array(["", "", "energy_outlier"])), path)
    source = open_source(path, "gap")
    assert whole(source).keys.tolist() == ["row 0"]
    assert source.dropped == {"std of 0.01 eV or more": 1, "suspect": 1}


# Forces


def with_forces(path, forces):
    """QM1B's columns, and forces in eV/Angstrom: water, (dropped), methane."""
    column = pa.array([np.asarray(one).ravel().tolist() for one in forces], pa.list_(pa.float32()))
    pq.write_table(qm1b_table(forces=column), path)
    return path


def test_forces_of_parquet(tmp_path):
    forces = [np.arange(9.0), np.zeros(9), -np.arange(15.0)]
    source = open_source(with_forces(tmp_path / "a.parquet", forces), "energy+forces", unit="eV")
    assert source.units == {"pos": "bohr", "energy": "eV", "forces": "eV/angstrom"}
    found = whole(source)
    assert found.keys.tolist() == ["row 0", "row 2"]
    expected = np.concatenate([forces[0], forces[2]]).reshape(-1, 3) * (Bohr / Hartree)
    np.testing.assert_allclose(found.forces, expected, rtol=1e-6)
    np.testing.assert_array_equal(found[1].forces, found.forces[3:])
    np.testing.assert_array_equal(found.take(np.array([1, 0]))[1].forces, found.forces[:3])
    assert whole(open_source(tmp_path / "a.parquet", "energy")).forces is None
    assert Samples.concatenate([found, Samples.of([]), found]).forces.shape == (16, 3)


def test_rows_without_finite_forces_are_dropped_and_counted(tmp_path):
    forces = [np.full(9, np.nan), np.zeros(9), -np.arange(15.0)]
    source = open_source(with_forces(tmp_path / "a.parquet", forces), "forces+energy")
    assert whole(source).keys.tolist() == ["row 2"]
    assert source.dropped == {"std of 0.01 eV or more": 1, "forces not finite": 1}
    few = with_forces(tmp_path / "b.parquet", [np.zeros(9), np.zeros(9), np.zeros(9)])
    with pytest.raises(UserError, match=r"b.parquet is damaged: part 0 has 11 .* but 9 forces"):
        whole(open_source(few, "forces+energy"))


def test_data_without_forces_say_how_to_get_them(run, tmp_path):
    pq.write_table(qm1b_table(), tmp_path / "a.parquet")
    for data in (run, tmp_path / "a.parquet", QM9):
        with pytest.raises(UserError, match=r"has no forces.*`qm1b generate --forces`"):
            whole(open_source(data, "forces+energy", unit=None))


@pytest.mark.parametrize("column", ["forces", "REF_forces", "forces_ev_angstrom"])
def test_forces_of_extended_xyz(tmp_path, column):
    rows = toy([0, 3, 9])
    source = open_source(written(tmp_path / "a.extxyz", rows, column), "forces+energy")
    found = whole(source)
    assert source.units[column.lower()] == "ev_angstrom"
    np.testing.assert_allclose(found.targets, rows.targets, rtol=1e-7)
    np.testing.assert_allclose(found.forces, rows.forces, atol=1e-7)


@pytest.mark.parametrize(
    ("key", "columns", "chosen"),
    [
        ("REF_energy", ["forces_ev_angstrom", "ref_forces"], "ref_forces"),
        ("REF_energy", ["forces", "forces_hartree_bohr"], "forces_hartree_bohr"),
        ("energy", ["forces", "ref_forces_ev_angstrom"], "forces"),
        ("energy", ["ref_forces", "forces_ev_angstrom"], "forces_ev_angstrom"),
    ],
)
def test_the_forces_are_those_of_the_energy_s_name(key, columns, chosen):
    properties = ":R:3:".join(["species:S:1:pos", *columns, ""]).removesuffix(":")
    comment = {"Properties": properties, key: "-1.0"}
    found = lookup(target_of("forces+energy"), comment, key, "ev", "a.xyz")
    assert found.forces.key == chosen


def test_frames_with_bad_forces(tmp_path):
    path = tmp_path / "a.xyz"
    forces = "forces:R:3 energy_ev=-1.0"
    good = WATER.format("").replace("pos:R:3", f"pos:R:3:{forces}").replace("\n\n", "\n")
    lines = good.splitlines()
    text = "\n".join([*lines[:2], *(f"{line} 0.1 0.2 -0.3" for line in lines[2:])]) + "\n"
    path.write_text(text + WATER.format("energy_ev=1") + text.replace("-0.3", "nan", 1))
    source = open_source(path, "forces+energy")
    found = whole(source)
    assert found.keys.tolist() == ["frame 1"]
    np.testing.assert_allclose(found.forces[2] * Hartree / Bohr, [0.1, 0.2, -0.3], rtol=1e-6)
    assert source.dropped == {"no forces": 1, "forces not finite": 1}
    path.write_text(text + text.replace("-0.3", "much", 1))
    with pytest.raises(UserError, match=r"frame 2: atom 1 is .*three numbers are needed in col"):
        whole(open_source(path, "forces+energy"))
    assert len(whole(open_source(path, "energy"))) == 2  # which does not read them
    path.write_text(text.replace("energy_ev", "energy_au"))
    with pytest.raises(UserError, match=r"'forces' does not say its unit.*forces_hartree_bohr"):
        open_source(path, "forces+energy")


# SMILES, and everything else


def test_smiles_for_predictions(tmp_path):
    path = tmp_path / "a.smi"
    path.write_text("O water\n\nCC\t17\t1\n")
    found = whole(open_source(path, None))
    assert found.smiles.tolist() == ["O", "CC"]
    assert found.keys.tolist() == ["line 1", "line 3"]
    ethane = Molecule.from_smiles("CC")
    assert found[1].numbers.tolist() == ethane.numbers.tolist()
    np.testing.assert_allclose(found[1].positions_bohr, ethane.positions, rtol=1e-6)
    assert np.isnan(found.targets).all()
    with pytest.raises(UserError, match=r"a.smi is a file of SMILES, which has no gap"):
        open_source(path, "gap")
    path.write_text("O\nC[C\n")
    found = whole(open_source(path, None))
    assert found.sizes.tolist() == [3, 0]
    assert found.reasons[0] == ""
    assert found.reasons[1].startswith("SMILES 'C[C' cannot be read")
    packed = tmp_path / "b.smi.gz"
    packed.write_bytes(gzip.compress(b"O\n"))
    assert len(whole(open_source(packed, None))) == 1
    table = tmp_path / "c.csv"
    table.write_bytes(b'name,SMILES\n"a, b",O\nc,C\xff\n')
    found = whole(open_source(table, None))
    assert (found.smiles[0], found.sizes.tolist()) == ("O", [3, 0])
    assert found.reasons[1] == "holds bytes that are not SMILES text"
    table.write_text("name,gap\na,1\n")
    with pytest.raises(UserError, match="has no column called smiles, or several"):
        open_source(table, None)


def test_paths_that_cannot_be_opened(tmp_path):
    for name, message in [
        ("missing.parquet", "missing.parquet does not exist; give a folder of qm1b generate"),
        ("notes.doc", "notes.doc is of no known kind"),
        ("empty", "empty has neither a manifest.json of qm1b generate nor .parquet files"),
    ]:
        (tmp_path / "notes.doc").touch()
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(UserError, match=message):
            open_source(tmp_path / name, "gap")
    with pytest.raises(UserError, match="no data was given"):
        open_source([], "gap")
    with pytest.raises(UserError, match="--target is 'gaps': use one of gap"):
        open_source(QM9, "gaps")


def test_fingerprints(run, tmp_path, monkeypatch):
    assert open_source(run, "gap").fingerprint() == open_source(run, "energy").fingerprint()
    path = tmp_path / "a.extxyz.gz"
    data = bytearray(QM9.read_bytes())
    path.write_bytes(data)
    first = open_source(path, "gap").fingerprint()
    assert first == open_source(QM9, "gap").fingerprint()
    data[9] ^= 1  # the header's byte for the system
    path.write_bytes(data)
    assert open_source(path, "gap").fingerprint() != first
    monkeypatch.setattr(base, "BLOCK_BYTES", 16)
    sampled = base.digest(path)
    for at in (0, len(data) // 2, len(data) - 1):
        other = tmp_path / "other"
        other.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        changed = base.digest(other) != sampled
        assert changed or at == len(data) // 2  # between the blocks it goes unnoticed
    other.write_bytes(data + b"\0")
    assert base.digest(other) != sampled


def test_samples_row_by_row():
    found = whole(open_source(QM9, "gap"))
    picked = found.take(np.array([7, 0, 7]))
    assert [row.key for row in picked] == ["frame 8", "frame 1", "frame 8"]
    np.testing.assert_array_equal(picked[-1].positions_bohr, found[7].positions_bohr)
    assert picked.sizes.tolist() == [len(found[i].numbers) for i in (7, 0, 7)]
    assert len(Samples.concatenate([])) == 0
    assert len(Samples.concatenate([found, picked, Samples.of([])])) == 63
    with pytest.raises(IndexError):
        found[60]
    with pytest.raises(ValueError, match="offsets of"):
        replace(found, atom_offset=found.atom_offset[:-1])
