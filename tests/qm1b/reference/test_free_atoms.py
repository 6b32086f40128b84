"""Free atoms: against spectroscopy, the Hartree-Fock limit, and PySCF left to itself."""

import subprocess
import sys

import pytest

from pyscf_ipu.elements.spellings import SYMBOLS
from pyscf_ipu.settings import Settings
from qm1b.reference.free_atoms import (
    OPEN_D,
    FreeAtoms,
    disagreements,
    free_atom_energy,
    multiplicity,
    occupation,
)

HF = Settings(basis="sto-3g", xc="hf", grid_level=0)
MULTIPLICITIES = [2, 1, 2, 1, 2, 3, 4, 3, 2, 1, 2, 1, 2, 3, 4, 3, 2, 1, 2, 1]
TERMS = dict(zip(SYMBOLS[1:21], MULTIPLICITIES, strict=True))
for first in (30, 48, 80):
    TERMS |= dict(zip(SYMBOLS[first : first + 9], [1, 2, 3, 4, 3, 2, 1, 2, 1], strict=False))
del TERMS["Fr"], TERMS["Ra"]
"""Multiplicities of the ground states: NIST Atomic Spectra Database."""


def test_the_multiplicities_are_those_of_spectroscopy():
    numbers = [z for z in range(1, 87) if z not in OPEN_D]
    assert {SYMBOLS[z]: multiplicity(z) for z in numbers} == TERMS
    for z in numbers:
        assert sum(map(sum, occupation(z).values())) == z


def test_a_core_takes_the_lowest_shells_of_each_kind():
    for number, core in ((37, 28), (53, 28), (55, 46), (86, 60)):
        left = occupation(number, core)
        assert sum(map(sum, left.values())) == number - core
        assert min(map(min, left.values())) >= 0
    assert occupation(53, 46)["Ag"] == (1, 1)


def test_iodine():
    """As PySCF finds it without symmetry, with the core potential."""
    from pyscf import gto, scf

    level = Settings(basis="def2-svp", xc="hf", grid_level=0)
    mole = gto.M(atom="I", basis="def2-svp", ecp="def2-svp", spin=1, verbose=0)
    field = scf.UHF(mole).run(conv_tol=1e-11)
    assert free_atom_energy(53, level) == pytest.approx(field.e_tot, abs=2e-7)


def test_an_open_d_shell_has_no_energy():
    with pytest.raises(ValueError, match="the free atom of Fe has an open d or f shell"):
        free_atom_energy(26, HF)
    assert FreeAtoms(HF, [26, 2], {"He": -2.5}).energies == {"He": -2.5}


def test_bromine():
    """A closed d shell below an open p shell: as PySCF finds it without symmetry."""
    from pyscf import gto, scf

    mole = gto.M(atom="Br", basis="sto-3g", spin=1, verbose=0)
    found = scf.UHF(mole).run(conv_tol=1e-11)
    assert free_atom_energy(35, HF) == pytest.approx(found.e_tot, abs=2e-7)


def test_the_hartree_fock_limit():
    """Of hydrogen it is exact; of helium C. Froese Fischer, The Hartree-Fock Method (1977)."""
    large = Settings(basis="cc-pvqz", xc="hf", grid_level=0)
    assert free_atom_energy(1, large) == pytest.approx(-0.5, abs=1e-4)
    assert free_atom_energy(2, large) == pytest.approx(-2.86168, abs=3e-4)


@pytest.mark.parametrize("number", [1, 7, 8, 16])
def test_the_same_as_pyscf_without_symmetry(number):
    """Where the orientation does not matter: Hartree-Fock, which needs no grid."""
    from pyscf import gto, scf

    mole = gto.M(atom=[(number, (0, 0, 0))], basis="6-31g*", spin=TERMS[SYMBOLS[number]] - 1)
    found = scf.UHF(mole.set(verbose=0)).run(conv_tol=1e-11)
    level = Settings(basis="6-31g*", xc="hf", grid_level=0)
    assert free_atom_energy(number, level) == pytest.approx(found.e_tot, abs=2e-8)


def test_functional_and_grid_are_those_of_the_level():
    from pyscf import dft, gto

    mole = gto.M(atom="N", basis="6-31g", spin=3, verbose=0)
    field = dft.UKS(mole, xc="b3lypg")
    field.grids.level = 1
    level = Settings(basis="6-31g", xc="b3lyp", grid_level=1)
    assert free_atom_energy(7, level) == pytest.approx(field.kernel(), abs=1e-7)
    assert (
        abs(free_atom_energy(7, Settings(basis="6-31g", xc="b3lyp5", grid_level=1)) - field.e_tot)
        > 1e-3
    )


def test_what_is_known_is_not_computed():
    atoms = FreeAtoms(Settings(basis="no-such-basis"), [1, 6], {"H": -0.5, "C": -37.0})
    assert (atoms.energies, atoms.problems) == ({"H": -0.5, "C": -37.0}, {})


def test_what_is_missing_is_computed():
    atoms = FreeAtoms(HF, [1, 2], {"He": -2.5})  # its thread failed when the run began
    assert atoms.energies == {"He": -2.5, "H": free_atom_energy(1, HF)}


def test_an_atom_that_fails_is_left_out_and_said():
    atoms = FreeAtoms(Settings(basis="no-such-basis"), [1], {})
    assert atoms.energies == {}
    assert list(atoms.problems) == ["H"]


def test_disagreements_are_said():
    there = {"H": free_atom_energy(1, HF), "He": free_atom_energy(2, HF) + 1e-3}
    (said,) = disagreements(there, HF)
    assert said == "He is -2.807784 hartree, the manifest has -2.806784"


def test_no_file_is_written(monkeypatch):
    """A process that is started while PySCF has its checkpoint file open inherits its lock."""
    from pyscf.scf import chkfile

    def locked(*_, **__):
        raise BlockingIOError(11, "unable to lock file")

    monkeypatch.setattr(chkfile, "dump_scf", locked)
    free_atom_energy.cache_clear()
    assert free_atom_energy(1, HF) == pytest.approx(-0.4665819, abs=1e-6)  # of STO-3G


IMPORTED_BY_THE_THREAD = """
import sys, threading
from pyscf_ipu.settings import Settings
from qm1b.reference import free_atoms

def modules():
    return {name for name in sys.modules if name.split(".")[0] == "pyscf"}

begun, compute = threading.Event(), free_atoms.free_atom_energy
free_atoms.free_atom_energy = lambda *of: begun.wait() and compute(*of)
atoms = free_atoms.FreeAtoms(Settings(basis="sto-3g", xc="b3lyp5", grid_level=0), [6], {})
before = modules()
begun.set()
print(list(atoms.energies), sorted(modules() - before))
"""


def test_the_thread_imports_nothing_of_pyscf():
    """Its modules import each other in circles, so two threads that import it may fail."""
    python = [sys.executable, "-c", IMPORTED_BY_THE_THREAD]
    done = subprocess.run(python, capture_output=True, text=True, check=True)
    assert done.stdout == "['C'] []\n"
