"""What a frame says: the one reader of XYZ that all three packages use."""

import numpy as np
import pytest
from fake_engine import Solver
from hypothesis import given
from hypothesis import strategies as st

from pyscf_ipu import InvalidMolecule, Molecule
from pyscf_ipu.molecule.files.stated import is_periodic
from pyscf_ipu.molecule.files.xyz import comment_keys, is_free_atom, parse_frame
from qm1b.formats import extxyz
from qm1b.inputs import Record
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Screen
from schnet.sources.xyz import XyzSource

STEREO = r"F/C=C\F"
FRAME = "6\n{comment}\nF 0 0 0\nC 0 0 1.3\nC 0 1.1 2\nF 0 1.1 3.3\nH 0 -0.9 1.9\nH 0 2 1.4\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'smiles="C/C=C\F"', r"C/C=C\F"),  # not escaped, as most programs write it
        (r'smiles="C/C=C\\F"', r"C/C=C\F"),  # escaped, as ASE and qm1b write it
        (r"smiles=C/C=C\F", r"C/C=C\F"),
        (r"smiles='C/C=C\F'", r"C/C=C\F"),
        (r'smiles="_JSON \"F\""', "F"),  # hydrogen fluoride, which ASE would read as false
        (r'smiles="_JSON \"C/C=C\\\\F\""', r"C/C=C\F"),
        (r'smiles="_JSON \"F"', '_JSON "F'),  # not JSON after all
        (r'smiles="say \"hi\""', 'say "hi"'),
        ("smiles={1 2 3}", "1 2 3"),
        ('smiles="_JSON [true, 1.5, null]"', "T 1.5 "),
        ('smiles=""', ""),
    ],
)
def test_values_of_a_comment(text, value):
    assert comment_keys(f"a=1 {text} b=2") == {"a": "1", "smiles": value, "b": "2"}


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), max_size=20))
def test_what_qm1b_writes_is_read_back(text):
    assert comment_keys(f"smiles={extxyz._written(text)} b=2")["smiles"] == text


@pytest.mark.parametrize("written", [STEREO, STEREO.replace("\\", "\\\\")])
def test_all_readers_keep_the_stereo_of_a_smiles(tmp_path, written):
    text = FRAME.format(comment=f'smiles="{written}" pbc="F F F"')
    path = tmp_path / "a.xyz"
    path.write_text(text)
    samples, _ = XyzSource(path, None).read_part(0)
    assert samples[0].smiles == STEREO
    screen = Screen(Limits(Solver(basis="sto-3g").n_ao, 128))
    assert screen(Record(1, block=text.strip(), format="xyz")).smiles == STEREO
    assert parse_frame(text.strip()).keys["smiles"] == STEREO


@pytest.mark.parametrize(
    ("comment", "charge", "expected"),
    [
        ("charge=-1", None, -1),
        ("charge=-1", -1, -1),
        ("Charge=-1.0", None, -1),
        ("no key", -1, -1),
    ],
)
def test_from_xyz_honours_the_charge(tmp_path, comment, charge, expected):
    path = tmp_path / "hydroxide.xyz"
    path.write_text(f"2\n{comment}\nO 0 0 0\nH 0 0 1\n")
    molecule = Molecule.from_xyz(path) if charge is None else Molecule.from_xyz(path, charge)
    assert molecule.charge == expected
    assert molecule.n_electrons == 10


@pytest.mark.parametrize(
    ("comment", "charge", "words"),
    [
        ("charge=-1", 0, r"states charge -1, which contradicts charge=0"),
        ("charge=half", None, "charge='half': it must be a whole number"),
        ("charge=1e30", None, "charge=.1e30.: it must be a whole number"),
    ],
)
def test_from_xyz_refuses_a_doubtful_charge(tmp_path, comment, charge, words):
    path = tmp_path / "a.xyz"
    path.write_text(f"2\n{comment}\nO 0 0 0\nH 0 0 1\n")
    with pytest.raises(InvalidMolecule, match=words):
        Molecule.from_xyz(path, charge)


@pytest.mark.parametrize(
    ("keys", "periodic"),
    [
        ({}, False),
        ({"Lattice": "9 0 0 0 9 0 0 0 9"}, True),
        ({"lattice": "9 0 0 0 9 0 0 0 9", "pbc": "F F F"}, False),
        ({"pbc": "F T F"}, True),
        ({"pbc": "0,0,1"}, True),
    ],
)
def test_periodic_frames(keys, periodic):
    assert is_periodic(keys) is periodic


def test_isotopes_labels_and_numbers_are_elements():
    frame = parse_frame("4\n\nD 0 0 0\nc1 0 0 1\n8 0 0 2\nCL 0 0 3")
    np.testing.assert_array_equal(frame.numbers, [1, 6, 8, 17])


def test_a_long_comment_takes_linear_time():
    assert comment_keys("a" * 200_000 + " b=1 c = 3") == {"b": "1", "c": "3"}


@pytest.mark.parametrize(
    ("comment", "free"),
    [
        ("config_type=IsolatedAtom energy=-13.6", True),
        ('energy=-13.6 Config_Type="IsolatedAtom"', True),
        ("config_type=Default name=IsolatedAtom", False),
        ("IsolatedAtom", False),
        ("", False),
    ],
)
def test_free_atoms_are_those_that_say_so(comment, free):
    assert is_free_atom(comment) is free
