"""Constants, defined once: CODATA 2018, and the right way up."""

import re
from pathlib import Path

import pyscf_ipu
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, E_BOHR_TO_DEBYE, HARTREE_TO_EV


def test_values():
    assert HARTREE_TO_EV == 27.211386245988
    assert BOHR_TO_ANGSTROM == 0.529177210903
    assert E_BOHR_TO_DEBYE == 2.541746473


def test_a_bond_has_the_right_length():
    """The C-H bond of methane is 1.09 Angstrom, or 2.06 Bohr."""
    assert 2.0 < 1.09 / BOHR_TO_ANGSTROM < 2.1


def test_nobody_else_defines_them():
    root = Path(pyscf_ipu.__file__).parents[1]
    sources = [p for name in ("pyscf_ipu", "qm1b", "schnet") for p in (root / name).rglob("*.py")]
    assert len(sources) > 20
    number = re.compile(r"27\.211|0\.5291?77|1\.8897|2\.5417")
    found = [p.name for p in sources if number.search(p.read_text())]
    assert found == ["units.py"]
