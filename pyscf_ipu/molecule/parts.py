"""The molecules of an XYZ or SDF file, one or all, and what is to be said of them."""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pyscf_ipu.base.errors import InvalidMolecule, UsageError
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.molecule.files import sdf
from pyscf_ipu.molecule.files.framing import Piece, frames_of
from pyscf_ipu.molecule.files.opening import PACKED, bounded_lines, opened
from pyscf_ipu.molecule.files.wrong_unit import in_words, mistaken_unit
from pyscf_ipu.molecule.files.xyz import Unreadable, frame_of
from pyscf_ipu.molecule.objects import Parts, parts_of_rdkit
from pyscf_ipu.molecule.smiles import charge_of_smiles

ALL = slice(None)
"""Every record."""

Which = int | slice | None
"""Number of a record from 0, or from the end if it is negative; None for the first."""

MOST = 2**31
"""Records are fewer than this."""

Read = tuple[list[Parts], list[str]]
"""The molecules that were asked for, and sentences about them."""

Item = TypeVar("Item", Piece, sdf.Entry)


def is_sdf(path: Path) -> bool:
    """Whether a file is an SDF or MOL file, by its name."""
    name = path.name.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    return name.endswith((".sdf", ".mol", ".sd"))


def read_xyz(
    path: Path, which: Which, charge: int | None = None, multiplicity: int | None = None
) -> Read:
    """Frames of an XYZ file; see `Molecule.from_xyz`."""
    with opened(path) as text:
        pieces, remarks = _chosen(path, frames_of(text), which)
    given = (charge, multiplicity)
    return [_of_piece(path, piece, given, remarks=remarks) for piece in pieces], remarks


def read_sdf(path: Path, which: Which) -> Read:
    """Entries of an SDF file; see `Molecule.from_sdf`."""
    with opened(path) as text:
        entries = sdf.entries(bounded_lines(text))
        chosen, remarks = _chosen(path, entries, which)
    return [_of_entry(path, entry) for entry in chosen], remarks


def _chosen(path: Path, records: Iterable[Item], which: Which) -> tuple[list[Item], list[str]]:
    """The records that are asked for; a remark if others are passed over unasked."""
    more: list[Item] = []
    if isinstance(which, slice):
        chosen = list(records)
    elif which is None:
        chosen = list(islice(records, 2))
        chosen, more = chosen[:1], chosen[1:]
    elif type(which) is not int or abs(which) >= MOST:
        raise UsageError(
            f"index={which!r}: give the number of a record, from 0, or -1 for the last"
        )
    elif which < 0:
        last = deque(records, maxlen=-which)
        chosen = list(last)[:1] if len(last) == -which else []
    else:
        chosen = list(islice(records, which, which + 1))
    if not chosen:
        index = "" if which in (None, 0, ALL) else f" of index={which}"
        raise InvalidMolecule(
            f"{path}, line 1: the file has no molecule{index}; an XYZ file has frames of a number "
            "of atoms, a comment and one line per atom, an SDF file entries that end with $$$$"
        )
    what = "in Python read_molecules(path) reads all, and index=0 says that the first is meant"
    return chosen, [f"only the first molecule of {path} is read: {what}"] if more else []


def _of_piece(
    path: Path, piece: Piece, given: tuple[int | None, int | None], remarks: list[str]
) -> Parts:
    """The molecule of a frame, with this charge and multiplicity; adds to the remarks."""
    charge, multiplicity = given
    if piece.trouble:
        raise InvalidMolecule(f"{path}, {piece.trouble}")
    line = piece.count_line + 1
    try:
        frame = frame_of(piece.comment, piece.atoms, charge=charge)
        frame.check(open_shell=True)
        stated, spin = frame.charge, frame.multiplicity
        if frame.keys.get("smiles"):
            of_smiles = charge_of_smiles(frame.keys["smiles"], frame.numbers)
            if stated not in (None, of_smiles):
                raise InvalidMolecule(f"charge {stated:+d} is given, the SMILES has {of_smiles:+d}")
            stated = of_smiles
    except InvalidMolecule as error:
        line += 1 + error.atom if isinstance(error, Unreadable) else 0
        raise InvalidMolecule(f"{path}, line {line}: {error}") from error
    if stated is not None and charge is not None and stated != charge:
        raise InvalidMolecule(
            f"{path} states charge {stated:+d}, which contradicts charge={charge}: leave one out"
        )
    if spin is not None and multiplicity is not None and spin != multiplicity:
        raise InvalidMolecule(
            f"{path} states multiplicity {spin}, which contradicts multiplicity={multiplicity}: "
            "leave one out"
        )
    if frame.pair:
        what = f"the comment {frame.pair!r} was read as charge and multiplicity"
        remarks.append(f"{path}, line {line}: {what}; charge= says otherwise")
    mistake = mistaken_unit(frame.numbers, frame.positions_angstrom)
    if mistake:
        remarks.append(f"{path}: {in_words(mistake)}")
    positions = frame.positions_angstrom / BOHR_TO_ANGSTROM
    return Parts(
        frame.numbers,
        positions,
        stated or charge or 0,
        name=path.stem,
        multiplicity=spin or multiplicity or 1,
    )


def _of_entry(path: Path, entry: sdf.Entry) -> Parts:
    """The molecule of an SDF entry."""
    from rdkit import Chem, rdBase

    where = f"{path}, line {entry.line}"
    supplier = Chem.SDMolSupplier()
    with rdBase.BlockLogs():
        supplier.SetData(entry.block, removeHs=False)
        graph = None if entry.is_cut else next(iter(supplier), None)
    if graph is None:
        raise InvalidMolecule(
            f"{where}: RDKit cannot read the entry that begins here: a MOL block with normal "
            "valences is needed; check the counts line and the valences"
        )
    try:
        parts = parts_of_rdkit(graph, name=entry.lines[0].strip() or path.stem)
        stated = sdf.stated_charge(entry.block, open_shell=True)
        multiplicity = sdf.stated_multiplicity(entry.block) or parts.multiplicity
    except InvalidMolecule as error:
        raise InvalidMolecule(f"{where}: {error}") from error
    if stated not in (None, parts.charge):
        raise InvalidMolecule(
            f"{where}: charge {stated:+d} is given, the atoms have {parts.charge:+d}"
        )
    return parts._replace(multiplicity=multiplicity)
