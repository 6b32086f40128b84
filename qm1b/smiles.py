"""SMILES in: reading files that people really have, and a reason for every line that is left out.

Nothing here embeds or computes; `screen` decides from the molecular graph alone, cheapest test
first, so that a molecule of thousands of atoms costs a string scan and not memory.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .errors import UserError
from .schema import Drop

MAX_CHARACTERS = 2000
"""A molecule of 128 AOs has some 25 heavy atoms; a SMILES spends a few characters on each."""

SHOWN = 200
"""Characters of a dropped line that are kept."""


class Line(NamedTuple):
    """One line of the input: its number from 1, and its SMILES ('' if there is none)."""

    number: int
    smiles: str


class InputSummary(NamedTuple):
    """What a first pass over the input file learned."""

    n_lines: int
    sha256: str


@dataclass(frozen=True)
class Candidate:
    """A molecule that passed every filter."""

    line: int
    smiles: str
    charge: int


def summarise(path: Path) -> InputSummary:
    """Count the lines and hash the bytes; also proves that the whole file can be read.

    Raises:
        UserError: the file is missing, not readable, empty, or a damaged gzip file.
    """
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"SMILES file {path} {what}; give a .smi or .smi.gz file.")
    digest = hashlib.sha256()
    n_lines = 0
    last = b"\n"
    try:
        with _open(path) as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
                n_lines += chunk.count(b"\n")
                last = chunk[-1:]
    except (OSError, EOFError) as error:
        raise UserError(f"SMILES file {path} cannot be read ({error}); copy it again.") from None
    if last != b"\n":
        n_lines += 1
    if n_lines == 0:
        raise UserError(f"SMILES file {path} is empty; it needs at least one SMILES, one a line.")
    return InputSummary(n_lines, digest.hexdigest())


def read(path: Path, limit: int | None = None) -> Iterator[Line]:
    """The lines of a SMILES file: plain or gzipped, with or without trailing columns (GDB: tabs).

    Bytes that are not UTF-8 become U+FFFD (and later `unparsable`); an endless line is cut after
    MAX_CHARACTERS and never held in memory. At most `limit` lines are read.
    """
    with _open(path) as stream:
        number = 0
        while (limit is None or number < limit) and (raw := stream.readline(MAX_CHARACTERS + 200)):
            number += 1
            whole = raw
            while not whole.endswith(b"\n") and (whole := stream.readline(1 << 16)):
                pass
            text = raw.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace")
            yield Line(number, _first_column(text))


def _open(path: Path) -> gzip.GzipFile | io.BufferedReader:
    with open(path, "rb") as probe:
        packed = probe.read(2) == b"\x1f\x8b"  # by content: names lie
    return gzip.open(path, "rb") if packed else open(path, "rb")


def _first_column(text: str) -> str:
    """The SMILES of a line, with its CXSMILES extension if there is one.

    The extension may say that an atom is a radical, so leaving it out would change the molecule.
    """
    columns = text.split(None, 1)
    if not columns:
        return ""
    rest = columns[1] if len(columns) > 1 else ""
    extension = rest[: rest.find("|", 1) + 1] if rest.startswith("|") else ""
    return f"{columns[0]} {extension}" if extension else columns[0]


@dataclass
class Screen:
    """The filters, in order. Holds the molecules seen, so one Screen serves one run.

    n_ao gives the number of AOs for atomic numbers, and raises ValueError when the basis lacks an
    element.
    """

    n_ao: Callable[[list[int]], int]
    max_aos: int
    keep_charged: bool = False
    _seen: dict[bytes, int] = field(default_factory=dict)

    def __call__(self, line: Line) -> Candidate | Drop:
        """The molecule of a line, or why it is left out."""
        try:
            return self._screen(line)
        except _Dropped as dropped:
            text = line.smiles[:SHOWN].replace("\0", "\\0")
            return Drop(line.number, text, dropped.reason, " ".join(dropped.detail.split()))

    def _screen(self, line: Line) -> Candidate:
        from rdkit import Chem, rdBase

        with rdBase.BlockLogs():
            graph = _parse(line.smiles)
            self._check_atoms(graph)
            graph = _sanitise(line.smiles, graph)
            charge = self._check_electrons(graph)
            # Electronic energies know nothing of nuclear masses, and map numbers are bookkeeping.
            for atom in graph.GetAtoms():
                atom.SetIsotope(0)
                atom.SetAtomMapNum(0)
            smiles = Chem.MolToSmiles(Chem.RemoveHs(graph))
        return self._unseen(line, smiles, charge)

    def _check_atoms(self, graph: Any) -> None:
        """Elements, fragments and a lower bound of the size, before RDKit does any chemistry."""
        from rdkit import Chem

        numbers = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
        self._check_size(numbers)
        fragments = len(Chem.GetMolFrags(graph))
        if fragments > 1:
            raise _Dropped("multi_fragment", f"{fragments} fragments")

    def _check_size(self, numbers: list[int]) -> None:
        from pyscf_ipu.molecule import MAX_ATOMIC_NUMBER, symbol_of

        for number in sorted(set(numbers)):
            if not 1 <= number <= MAX_ATOMIC_NUMBER:
                name = symbol_of(number) if number else "a wildcard or dummy atom"
                raise _Dropped("unsupported_element", f"{name}; H to Cl are computed")
            try:
                self.n_ao([number])
            except ValueError as error:
                raise _Dropped("unsupported_element", f"{symbol_of(number)}: {error}") from None
        n_ao = self.n_ao(numbers)
        if n_ao > self.max_aos:
            raise _Dropped("too_large", f"at least {n_ao} AOs, more than --max-aos {self.max_aos}")

    def _check_electrons(self, graph: Any) -> int:
        """Radicals, charge, parity and the true size; returns the charge."""
        from rdkit import Chem

        radicals = sum(atom.GetNumRadicalElectrons() for atom in graph.GetAtoms())
        if radicals:
            raise _Dropped("radical", f"{radicals} unpaired electron(s)")
        charge = Chem.GetFormalCharge(graph)
        if charge and not self.keep_charged:
            raise _Dropped("charged", f"charge {charge:+d}; --keep-charged keeps closed-shell ions")
        numbers = [atom.GetAtomicNum() for atom in graph.GetAtoms()]
        numbers += [1] * sum(atom.GetTotalNumHs() for atom in graph.GetAtoms())
        n_electrons = sum(numbers) - charge
        if n_electrons < 1 or n_electrons % 2:
            raise _Dropped("odd_electrons", f"{n_electrons} electrons; only closed shells")
        self._check_size(numbers)
        return charge

    def _unseen(self, line: Line, smiles: str, charge: int) -> Candidate:
        # 16 bytes a molecule instead of its text: a million lines must fit in a small memory.
        key = hashlib.blake2b(smiles.encode(), digest_size=16).digest()
        first = self._seen.setdefault(key, line.number)
        if first != line.number:
            raise _Dropped("duplicate", f"same molecule as line {first}: {smiles}")
        return Candidate(line.number, smiles, charge)


class _Dropped(Exception):
    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


def _parse(smiles: str) -> Any:
    """The bare graph, without any chemistry done to it."""
    from rdkit import Chem

    if not smiles:
        raise _Dropped("empty", "no SMILES on this line")
    if len(smiles) > MAX_CHARACTERS:
        raise _Dropped("too_long", f"more than {MAX_CHARACTERS} characters")
    if not smiles.isascii() or not smiles.isprintable():
        raise _Dropped("unparsable", "holds bytes that are not SMILES text")
    parameters = Chem.SmilesParserParams()
    parameters.sanitize = False
    parameters.removeHs = False
    try:
        graph = Chem.MolFromSmiles(smiles, parameters)
    except RuntimeError as error:
        raise _Dropped("unparsable", f"syntax: {str(error)[:SHOWN]}") from None
    if graph is None or graph.GetNumAtoms() == 0:
        raise _Dropped("unparsable", "syntax error")
    return graph


def _sanitise(smiles: str, graph: Any) -> Any:
    """The chemical molecule: parsed again, now that it is known to be small."""
    from rdkit import Chem

    problems = Chem.DetectChemistryProblems(graph)
    if problems:
        raise _Dropped("unparsable", problems[0].Message()[:SHOWN])
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise _Dropped("unparsable", "not a valid molecule")
    return molecule
