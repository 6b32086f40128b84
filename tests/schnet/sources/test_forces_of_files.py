"""Forces from every kind of file, in atomic units."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ase.units import Bohr, Hartree
from fake_runs import fake_run
from packs import QM9
from source_files import WATER, qm1b_table, whole
from toy_forces import toy, written

from qm1b.convert.export import export
from schnet.errors import UserError
from schnet.samples.samples import Samples
from schnet.samples.targets import target_of
from schnet.sources import open_source
from schnet.sources.lookup import lookup


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


def test_data_without_forces_say_how_to_get_them(tmp_path):
    run, _ = fake_run(tmp_path, "O\n", workers=1, conformers=1)
    pq.write_table(qm1b_table(), tmp_path / "a.parquet")
    for data in (run, tmp_path / "a.parquet", QM9):
        with pytest.raises(UserError, match=r"has no forces.*`qm1b generate --forces`"):
            whole(open_source(data, "forces+energy", unit=None))


def test_forces_with_the_atomisation_energy(tmp_path):
    """From a run and its exports: the energies of one target, the forces of the other."""
    run, _ = fake_run(tmp_path, "O\nCCO\n", forces=True)
    of_energy, of_bonds = (
        whole(open_source(run, name)) for name in ("forces+energy", "atomisation_energy")
    )
    for path in (run, tmp_path / "a.parquet", tmp_path / "a.extxyz"):
        if path != run:
            export(run, path)
        found = whole(open_source(path, "forces+atomisation_energy"))
        np.testing.assert_allclose(found.targets, of_bonds.targets, rtol=1e-9)
        np.testing.assert_allclose(found.forces, of_energy.forces, rtol=1e-6)


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
