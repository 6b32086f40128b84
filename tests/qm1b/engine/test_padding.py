"""Fine or coarse padding: which one takes less time."""

import dataclasses

import pytest
from rdkit import Chem

from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.shape import shape_of
from qm1b.commands.generate import SAMPLE
from qm1b.engine import padding
from qm1b.settings import PRESETS

QM1B = PRESETS["qm1b"]
LARGER = dataclasses.replace(QM1B, basis="6-31g*")


def test_coarse_padding_is_for_few_rows_of_several_molecules():
    """The arithmetic of the module's docstring, term by term."""
    assert [round(padding.programs_saved(m), 1) for m in (1, 10, 10_000)] == [0.0, 1.6, 7.0]
    limit = 7 * 5.0 / (0.095 * 0.2 * 2)
    for rows, expected in ((165, "coarse"), (limit - 1, "coarse"), (limit + 1, "fine")):
        assert padding.cheaper(QM1B, int(rows), 1) == expected
    assert padding.cheaper(QM1B, 165, 1000) == "fine"
    assert padding.cheaper(QM1B, 1, 1) == "fine"  # a program is needed anyway
    assert padding.cheaper(QM1B, 20, 20) == "coarse"
    assert padding.cheaper(QM1B, 2, 200) == "fine"  # as many rows, but little to share


def test_rows_of_a_larger_basis_are_dearer():
    assert padding.cheaper(LARGER, 50, 1) == "coarse"
    assert padding.cheaper(LARGER, 500, 1) == "fine" != padding.cheaper(QM1B, 500, 1)
    finer = dataclasses.replace(LARGER, grid_level=1)
    assert {padding.cheaper(finer, n, 1) for n in range(1, 200)} == {"fine"}


def test_a_basis_without_hydrogen_is_no_error():
    assert padding.cheaper(Settings(basis="cc-pcvdz"), 165, 1) == "fine"


def test_the_bundled_molecules_are_as_the_costs_say():
    """Half as many programs, and N^2 G grows by a quarter, of which four fifths cost time."""
    found = {False: [], True: []}
    for line in SAMPLE.read_text().splitlines()[:165]:
        atoms = Chem.AddHs(Chem.MolFromSmiles(line.split()[0])).GetAtoms()
        numbers = [atom.GetAtomicNum() for atom in atoms]
        for coarse, shapes in found.items():
            shapes.append(shape_of(numbers, QM1B.basis, QM1B.cart, QM1B.grid, coarse=coarse))
    assert [len(set(shapes)) for shapes in found.values()] == [11, 6]
    fine, coarse = (sum(s.n_ao**2 * s.n_grid for s in shapes) for shapes in found.values())
    assert 0.8 * (coarse / fine - 1) == pytest.approx(padding.DEARER, abs=0.05)
