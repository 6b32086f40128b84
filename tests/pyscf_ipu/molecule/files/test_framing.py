"""Frames out of any text: nothing is passed over, and a part of a file is read as the whole."""

import gzip
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyscf_ipu import InvalidMolecule, Molecule, read_molecules
from pyscf_ipu.molecule.files.framing import frames, frames_of, is_atom, is_count

WATER = "O 0 0 0.1\nH 0 0.76 -0.47\nH 0 -0.76 -0.47\n"
LINES = ["1", " 2 ", "3", "99999", "-1", "0", "", "  ", "a title", "charge=1", "InChI=1S/x"]
LINES += ["O 0 0 0.1", "H 0 0.76 -0.47", "8 0 0 1D-1", "1.5 2.5 3.5", "H\t0\t0\t1.5*^-1", "caf\xe9"]
TEXTS = st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(["\n", "\r\n", "\r"])))


def joined(lines):
    return "".join(line + end for line, end in lines)


def read(raw):
    return list(frames_of(io.StringIO(raw.decode(), newline=None)))


@given(TEXTS)
@example([("3", "\n"), ("a", "\n"), ("1", "\n"), ("b", "\n"), ("H 0 0 0", "\n")])
def test_a_text_from_any_frame_on_holds_the_frames_that_follow(lines):
    """The latter are read as schnet reads parts of a file: by bytes, which have a place."""
    raw = joined(lines).encode()
    whole = read(raw)
    bytewise = io.TextIOWrapper(io.BytesIO(raw), "latin-1", newline="")
    placed = list(frames(bytewise, max_atoms=1 << 31))
    troubles = [str(piece.trouble).encode("latin-1").decode() for piece in placed]
    assert troubles == [str(piece.trouble) for piece in whole]
    assert [piece.line for piece in placed] == [piece.line for piece in whole]
    for n, piece in enumerate(placed):
        rest = read(raw[piece.at :])
        assert [p.atoms for p in rest] == [p.atoms for p in whole[n:]]
        assert [p.comment for p in rest] == [p.comment for p in whole[n:]]


@given(TEXTS)
def test_every_line_belongs_to_a_frame_or_is_named(lines):
    """Without titles and QM9's lines, whatever is not blank is in a piece."""
    text = joined([(line, end) for line, end in lines if line != "InChI=1S/x"])
    pieces = read(text.encode())
    assert bool(pieces) == bool(text.strip())
    assert all(piece.trouble or piece.atoms for piece in pieces)


@pytest.mark.parametrize(
    ("line", "count", "atom"),
    [
        ("3", True, False),
        (" 3\r\n", True, False),
        ("3.0", False, False),
        ("3 atoms", False, False),
        ("1234567890", False, False),
        ("H 0 0 0", False, True),
        ("1 0 0 0.1 O", False, True),
        ("8 0 0 1.5*^-3 0.1", False, True),
        ("Step 1 of 3", False, False),
    ],
)
def test_counts_and_atoms(line, count, atom):
    assert (is_count(line), is_atom(line)) == (count, atom)


def test_a_large_frame_is_refused_before_anything_is_computed(tmp_path):
    path = tmp_path / "large.xyz"
    path.write_text("100000\n\n" + "H 0 0 0\n" * 100_000 + f"3\n\n{WATER}")
    with pytest.raises(InvalidMolecule, match="line 1: 100000 atoms: 2000 at most"):
        Molecule.from_xyz(path)
    assert Molecule.from_xyz(path, index=1).n_atoms == 3
    assert Molecule.from_xyz(path, index=-1).n_atoms == 3


def test_lines_without_end_are_refused():
    for text in ("3\n" + "a" * 300_000 + f"\n{WATER}", "1\n\nH 0 0 " + "0" * 300_000):
        (piece,) = frames_of(io.StringIO(text))
        assert piece.trouble.reason == "too_long"


def test_a_trajectory_says_that_it_has_several_frames(tmp_path):
    path = tmp_path / "a.xyz.gz"
    path.write_bytes(gzip.compress(f"3\nfirst\n{WATER}2\n\nH 0 0 0\nF 0 0 0.9\n".encode()))
    with pytest.warns(UserWarning, match=r"only the first molecule.*read_molecules.*index=0"):
        assert Molecule.from_xyz(path).n_atoms == 3
    assert [Molecule.from_xyz(path, index=i).n_atoms for i in (0, 1, -1, -2)] == [3, 2, 2, 3]
    assert [mol.n_atoms for mol in read_molecules(path)] == [3, 2]
    for index in (2, -3):
        with pytest.raises(InvalidMolecule, match=f"no molecule of index={index}"):
            Molecule.from_xyz(path, index=index)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InvalidMolecule, match="cannot be read"):
        read_molecules(path)
