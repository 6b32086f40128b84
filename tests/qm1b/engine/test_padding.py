"""Fine, coarse or coarsest padding: which one takes least time."""

import dataclasses

import pytest
from rdkit import Chem

from qm1b.commands.generate import SAMPLE
from qm1b.engine.padding import cheapest
from qm1b.engine.price import Prices
from qm1b.settings import PRESETS, RunSettings

QM1B = PRESETS["qm1b"]
LARGER = dataclasses.replace(QM1B, basis="6-31g*")
MIXED = QM1B.changed(xc="pbe0", precision="mixed")


def atoms_of(smiles):
    return [atom.GetAtomicNum() for atom in Chem.AddHs(Chem.MolFromSmiles(smiles)).GetAtoms()]


SIZES = [atoms_of(x) for x in "CCCO CC=CC#N CCCCCO CCNN=CNC CCC(C)CCCO CC1(C)CC2(CO2)C1=O".split()]
"""Of 4 to 9 atoms other than hydrogen, and as many fine shapes."""


@pytest.fixture(scope="module")
def bundled():
    return [atoms_of(line.split()[0]) for line in SAMPLE.read_text().splitlines()[:165]]


def test_programs_of_the_bundled_molecules(bundled):
    prices = [Prices(QM1B, forces=False, coarse=coarse) for coarse in (0, 1, 2)]
    assert [len({each.shape(atoms) for atoms in bundled}) for each in prices] == [11, 6, 1]


def taken(molecules, rows, level=QM1B, **changes):
    return cheapest(molecules, float(rows), RunSettings(level, 1, **{"max_aos": 1000} | changes))


def test_the_fewer_rows_the_coarser(bundled):
    assert [taken(bundled, rows) for rows in (1, 5, 100)] == ["coarsest", "coarse", "fine"]
    assert [taken(SIZES, rows, MIXED, forces=True) for rows in (10, 1000)] == ["coarsest", "fine"]


def test_a_program_that_is_needed_anyway_saves_nothing(bundled):
    assert taken(SIZES[:1], 1) == "fine"
    assert taken([], 1) == "fine"
    assert taken(bundled, 1000) == "fine"  # as preset qm1b has them
    assert taken(SIZES[:2], 1000) == "fine"


def test_rows_of_a_larger_basis_are_dearer(bundled):
    assert [taken(bundled, 2, level) for level in (QM1B, LARGER)] == ["coarse", "fine"]
    finer = dataclasses.replace(LARGER, grid_level=3)
    assert taken(bundled, 1, finer) == "fine"


def test_a_basis_without_an_element_is_no_error():
    assert taken([[6, 8], [6, 6, 1]], 1, QM1B.changed(basis="cc-pcvdz")) == "fine"


def test_the_coarsest_padding_changes_time_alone():
    """It makes no molecule too large, and fits no density that would not be fitted."""
    assert taken(SIZES, 1, max_aos=64) != "coarsest" == taken(SIZES, 1, max_aos=65)
    alkanes = [[6] * n + [1] * (2 * n + 2) for n in range(1, 7)]
    assert [taken(alkanes, 1, LARGER.changed(jk=jk)) for jk in ("exact", "auto")] == [
        "coarsest",
        "fine",
    ]


def test_rows_of_a_simulated_ipu_are_priced_without_spare_atoms(bundled):
    assert taken(bundled, 1, machine="bow") == "coarse"
