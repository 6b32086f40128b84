"""What a comment states is honoured or refused, by every reader alike, and never ignored."""

import numpy as np
import pytest
from fake_engine import Solver

from pyscf_ipu import InvalidMolecule, Molecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from qm1b.inputs import Record
from qm1b.rows.schema import Drop
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Screen
from schnet.sources import open_source

OXYGEN = "O 0 0 0\nO 0 0 1.2\n"
WATER = "O 0 0 0.1\nH 0 0.76 -0.47\nH 0 -0.76 -0.47\n"
MOMENTS = "Properties=species:S:1:pos:R:3:initial_magmoms:R:1"


def written(tmp_path, comment, atoms):
    path = tmp_path / "a.xyz"
    path.write_text(f"{atoms.count(chr(10))}\n{comment}\n{atoms}")
    return path


def screened(path):
    screen = Screen(Limits(Solver(basis="sto-3g").n_ao, 128, keep_charged=True))
    return screen(Record(1, block=path.read_text().rstrip("\n"), format="xyz"))


@pytest.mark.parametrize(
    ("comment", "atoms", "reason", "words"),
    [
        ("spin=3", OXYGEN, "radical", "open shell, of multiplicity 3.*pi.uks"),
        ("Spin=3.0", OXYGEN, "radical", "open shell"),
        ("multiplicity=3", OXYGEN, "radical", "multiplicity 3"),
        ("total_spin=2 charge=1", OXYGEN, "radical", "multiplicity 2"),
        ("spin_multiplicity=3", OXYGEN, "radical", "multiplicity 3"),
        (
            "spin=0",
            OXYGEN,
            "radical",
            r"spin=0: it means .*2S \+ 1.*unpaired electrons as in PySCF",
        ),
        ("spin=up", OXYGEN, "unparsable", "spin=up: it must be a whole number"),
        ("spin=1 multiplicity=3", OXYGEN, "mismatch", "multiplicity=3 and spin=1 contradict"),
        ('initial_magmoms="1 1"', OXYGEN, "radical", "multiplicity 3"),
        ('initial_magmoms="_JSON [0.0, -1.5]"', OXYGEN, "radical", "add up to 1.5: one whole"),
        ("initial_magmoms=up", OXYGEN, "unparsable", "magnetic moments must be numbers"),
        (MOMENTS, "O 0 0 0 0.0\nO 0 0 1.2 1.0\n", "radical", "16 electrons, .* multiplicity 2"),
        ("charge=2 total_charge=0", WATER, "mismatch", r"charge=2 and total_charge=0"),
        ("charge=0 charge=2", WATER, "mismatch", "charge is stated twice, as '0' and '2'"),
        ("total_charge=half", WATER, "unparsable", "total_charge='half': it must be a whole"),
        ("units=nm", WATER, "unparsable", "units='nm': .* in Angstrom or Bohr"),
        ("units=Bohr unit=Angstrom", WATER, "mismatch", "units=Bohr and unit=Angstrom contradict"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_every_reader(
    tmp_path, comment, atoms, reason, words
):
    path = written(tmp_path, comment, atoms)
    with pytest.raises(InvalidMolecule, match=words):
        Molecule.from_xyz(path).check()
    drop = screened(path)
    assert isinstance(drop, Drop)
    assert drop.reason == reason
    (row,) = open_source(path, None).part(0)
    assert row.reason == drop.detail
    path.write_text(path.read_text().replace("\n", "\ngap_au=1 ", 1))
    source = open_source(path, "gap")
    assert len(source.part(0)) == 0
    assert source.dropped.total() == 1


@pytest.mark.parametrize(
    ("comment", "charge"),
    [
        ("spin=1 multiplicity=1.0", 0),
        ("total_charge=2", 2),
        ("charge=-2 Total_Charge=-2.0", -2),
        ('initial_magmoms="0 0 0.0" charge=2', 2),
        ("charge=2 charge=2", 2),
    ],
)
def test_a_charge_is_honoured_and_a_singlet_accepted(tmp_path, comment, charge):
    path = written(tmp_path, comment, WATER)
    assert Molecule.from_xyz(path).charge == charge
    assert screened(path).charge == charge
    assert open_source(path, None).part(0)[0].reason == ""


def test_the_argument_must_agree_with_the_total_charge(tmp_path):
    path = written(tmp_path, "total_charge=2", WATER)
    assert Molecule.from_xyz(path, 2).charge == 2
    with pytest.raises(InvalidMolecule, match=r"states charge \+2, which contradicts charge=0"):
        Molecule.from_xyz(path, 0)


def test_moments_of_zero_in_a_column(tmp_path):
    path = written(tmp_path, MOMENTS, "O 0 0 0 0\nO 0 0 1.2 0.0\n")
    assert Molecule.from_xyz(path).n_atoms == 2


@pytest.mark.parametrize(
    ("unit", "angstrom"),
    [("Angstrom", 1.0), ("ang", 1.0), ("Å", 1.0), ("bohr", None), ("a.u.", None), ("AU", None)],
)
def test_the_stated_unit_is_used_by_every_reader(tmp_path, unit, angstrom):
    path = written(tmp_path, f"units={unit}", WATER)
    if angstrom is None:  # the same molecule, in the other unit
        numbers = np.array([row.split()[1:] for row in WATER.splitlines()], float)
        rows = [" ".join(map(repr, row)) for row in (numbers / BOHR_TO_ANGSTROM).tolist()]
        atoms = "".join(f"{s} {row}\n" for s, row in zip("OHH", rows, strict=True))
        path = written(tmp_path, f"units={unit}", atoms)
    expected = 0.76 / BOHR_TO_ANGSTROM
    assert Molecule.from_xyz(path).positions[1, 1] == pytest.approx(expected)
    assert screened(path).geometry.positions[1, 1] == pytest.approx(expected)
    assert open_source(path, None).part(0)[0].positions_bohr[1, 1] == pytest.approx(expected)
