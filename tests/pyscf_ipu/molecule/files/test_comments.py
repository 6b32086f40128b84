"""What people write into the comment of a frame, and between its columns."""

import warnings

import pytest

import pyscf_ipu as pi

WATER_LINES = ("O 0 0 0.1", "H 0 0.76 -0.47", "H 0 -0.76 -0.47")


def read_frame(path, comment="", lines=WATER_LINES, title=""):
    """A molecule from a file of one frame."""
    path.write_text("\n".join([*([title] if title else []), str(len(lines)), comment, *lines, ""]))
    return pi.Molecule.from_xyz(path)


@pytest.mark.parametrize(
    ("comment", "title"),
    [
        ("charge: 2 mult: 1", ""),
        ("Charge 2", ""),
        ("chrg=2", ""),
        ("* xyz 2 1", ""),
        ("(2, 1)", ""),
        ("2.0 1.0", ""),
        ("2;1", ""),
        ("2 1 water dication charge=2", ""),
        ("", "2 1"),
        ('smiles="[OH2+2]"', ""),
    ],
)
def test_a_charge_is_read_as_people_write_it(comment, title, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read_frame(tmp_path / "a.xyz", comment, title=title).charge == 2


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("0 3 triplet water", "'0 3 triplet water' might be charge"),
        ("2 1 water dication", "'2 1 water dication' might be charge"),
        ("0 3 triplet water charge=0", "open shell, of multiplicity 3"),
        ("1 2", "of multiplicity 2"),
        ("mult: 3", "of multiplicity 3"),
        ("uhf=2", "of multiplicity 3"),
        ("charge=", "charge=''"),
        ("charge=1_0", "whole number"),
        ("smiles=CCO", "other atoms than the geometry"),
        ("smiles=O charge=1", r"charge \+1 is given, the SMILES has \+0"),
        ("smiles=Q", "cannot be read"),
        *((f'Lattice="5 0 0 0 5 0 0 0 5" pbc={pbc}', "periodic") for pbc in ("[T,T,T]", "FFT")),
        *((f"pbc={pbc}", "periodic") for pbc in ("yes", '".true. .true. .true."', "xyz")),
    ],
)
def test_what_a_comment_states_is_not_passed_over(comment, words, tmp_path):
    warnings.simplefilter("ignore")  # until the end of the test
    with pytest.raises(pi.InvalidMolecule, match=words):
        read_frame(tmp_path / "a.xyz", comment).check()


@pytest.mark.parametrize(
    "comment", ["0 1 water", "12 5 water at 300 K", "step 2 1", 'pbc="F F F"', "pbc=False"]
)
def test_what_says_nothing_else_is_a_neutral_molecule(comment, tmp_path):
    assert read_frame(tmp_path / "a.xyz", comment).charge == 0


@pytest.mark.parametrize(
    ("comment", "lines", "words"),
    [
        ("", ("O 8.0 0 0 0.1", "H 1.0 0 0.76 -0.47", "H 1.0 0 -0.76 -0.47"), "second column"),
        ("", ("O 1 8 0 0 0.1", "H 2 1 0 0.76 -0.47", "H 3 1 0 -0.76 -0.47"), "second column"),
        ("", ("O 0 0 0 0.1", "H -1 0 0.76 -0.47", "H 0 0 -0.76 -0.47"), "second column"),
        ("", ("O 0 0 0.1_2", "H 0 0.76 -0.47", "H 0 -0.76 -0.47"), "an element and x, y, z"),
        ("Properties=pos:R:3", ("1 0 0", "6 1 1.2", "8 -1 2"), "name:type:width"),
        ("Properties=species:S:1:pos:R:3:pos:R:3", ("H 0 0 0 1 1 1",), "name:type:width"),
        ("Properties=species:S:1:pos:R:3:Z:I:1", ("H 0 0 0 6", "F 0 0 1 9"), "different elements"),
    ],
)
def test_no_other_column_is_taken_for_a_coordinate(comment, lines, words, tmp_path):
    with pytest.raises(pi.InvalidMolecule, match=words):
        read_frame(tmp_path / "a.xyz", comment, lines)


def test_partial_charges_behind_the_coordinates_are_no_codes(tmp_path):
    lines = ("O 0.0 0 0.1 -0.8", "H 0.0 0.76 -0.47 0.4", "H 0.0 -0.76 -0.47 0.4")
    assert read_frame(tmp_path / "a.xyz", "", lines).n_atoms == 3


@pytest.mark.parametrize("index", [True, 10**30, -(10**30)])
def test_an_index_is_a_whole_number(index, tmp_path):
    read_frame(tmp_path / "a.xyz")
    with pytest.raises(pi.UsageError, match="index="):
        pi.Molecule.from_xyz(tmp_path / "a.xyz", index=index)
