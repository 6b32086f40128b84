"""The content of a dataset as text: what a run holds, and the first rows."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np

from pyscf_ipu.base.terminal import counted, text_table
from pyscf_ipu.base.units import FORCE_TO_EV_PER_ANGSTROM, FORCE_TO_MEV_PER_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.elements.spellings import SYMBOLS
from qm1b.folder.completeness import notice
from qm1b.folder.shard_folder import ShardFolder
from qm1b.formats.load import load
from qm1b.rows.batch import Batch, Record
from qm1b.rows.identity import distinct
from qm1b.rows.schema import CONVERGED, DROP_REASONS
from qm1b.settings import FINE, SUSPECT

LONGEST_ID = 24
"""Characters of an id in a table of rows."""

MEV = 1e3 * HARTREE_TO_EV

_FIELDS = tuple("line id smiles conformer n_ao energy atomisation_energy homo lumo".split())
_FIELDS += tuple("dispersion dipole cycles status forces cycle_energy".split())
_COLUMNS: dict[str, Callable[[Record], object]] = {
    # A space before the title of a column of numbers keeps the columns apart.
    " line": lambda row: row["line"],
    "id": lambda row: _short(row["id"]),
    "smiles": lambda row: row["smiles"],
    " conformer": lambda row: row["conformer"],
    " N [AOs]": lambda row: row["n_ao"],
    " energy [eV]": lambda row: _decimal(row["energy"] * HARTREE_TO_EV),
    " atomisation [eV]": lambda row: _decimal(row["atomisation_energy"] * HARTREE_TO_EV),
    " dispersion [eV]": lambda row: _decimal(row["dispersion"] * HARTREE_TO_EV),
    " homo [eV]": lambda row: _decimal(row["homo"] * HARTREE_TO_EV),
    " lumo [eV]": lambda row: _decimal(row["lumo"] * HARTREE_TO_EV),
    " gap [eV]": lambda row: _decimal((row["lumo"] - row["homo"]) * HARTREE_TO_EV),
    " dipole norm [e bohr]": lambda row: _decimal(np.linalg.norm(row["dipole"])),
    " largest force [eV/A]": lambda row: _decimal(
        np.linalg.norm(row["forces"], axis=1).max() * FORCE_TO_EV_PER_ANGSTROM
    ),
    " cycles": lambda row: row["cycles"],
    " last step [eV]": lambda row: _last_step(row["cycle_energy"]),
    "status": lambda row: row["status"],
}


def first_rows(path: Path, count: int) -> str:
    """The first `count` rows of any dataset that `load` reads, as a table with energies in eV.

    Columns that the dataset lacks are left out.

    Raises:
        UserError: there is no dataset.
    """
    rows = list(islice(load(path, _FIELDS), count))
    if not rows:
        return f"{path} has no rows."
    columns = []
    for title, value in _COLUMNS.items():
        with suppress(KeyError):  # the dataset may lack the field
            columns.append([title, *map(value, rows)])
    columns = [column for column in columns if column[0] != "id" or any(column[1:])]
    return "\n".join(text_table(zip(*columns, strict=True), len(columns) * "> "))


def describe(folder: Path) -> str:
    """Settings, counts, drop reasons and ranges of a run, from its manifest and shards.

    Raises:
        UserError: the folder holds no run, or a shard is lost, damaged or contradicts the manifest.
    """
    source = ShardFolder(folder)
    notice(source)  # raises if a shard is lost
    manifest, settings = source.manifest, source.manifest.settings
    statuses: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    gaps, sizes, errors, forces = [np.zeros(0)], [np.zeros(0, int)], [np.zeros(0)], [np.zeros(0)]
    molecules, elements, torn = set[int](), set[int](), 0
    for number in range(len(source.shards)):
        shard, drops = source.unit(number)
        elements |= _compared_elements(shard)
        good = shard["status"] == CONVERGED
        statuses.update(s.split(":")[0] for s in shard["status"])
        reasons.update(drop.reason for drop in drops)
        gaps.append((shard["lumo"] - shard["homo"])[good] * HARTREE_TO_EV)
        sizes.append(shard["n_ao"])
        errors.append((shard["energy"] - shard["reference_energy"])[good] * MEV)
        if "forces" in shard:
            forces.append(shard["reference_forces_error"][good] * FORCE_TO_MEV_PER_ANGSTROM)
        molecules |= distinct(shard)
        torn += int(shard["torn"].sum())
    facts = [
        ("input", f"{manifest.input.name} ({counted(manifest.input.lines, 'line')})"),
        ("level", manifest.level.in_words),
        *([("machine", f"simulated {settings['machine']}")] if "machine" in settings else []),
        ("forces", "of every converged row" if settings.get("forces") else "none"),
        ("cycles", "of every row" if settings.get("history") else "not kept"),
        *([("properties", settings["properties"])] if "properties" in settings else []),
        ("functional", manifest.functional_definition),
        ("conformers", f"{settings['conformers']} per molecule, seed {settings['seed']}"),
        ("padding", settings.get("padding", FINE)),
        ("stability", _stability(settings.get("stability", "none"))),
        *_free_atoms(source.free_atom_energies, elements),
        ("fingerprint", manifest.fingerprint),
        ("molecules", len(molecules)),
        ("rows", statuses.total()),
    ]
    dropped = [(reason, n, DROP_REASONS.get(reason, "")) for reason, n in reasons.most_common()]
    lines = [
        f"{folder}: {source.status}, {counted(len(source.shards), 'shard')}",
        *_aligned(facts),
        *text_table(statuses.most_common(), "<18 <", indent="    "),
        *_aligned([*([("torn", torn)] if torn else []), ("dropped", reasons.total())]),
        *text_table(dropped, "<18 <8 <", indent="    "),
        *_aligned(_ranges(map(np.concatenate, (gaps, sizes, errors, forces)))),
    ]
    return "\n".join(lines)


def _stability(of: str) -> str:
    """Which rows are looked at, from the setting `stability`."""
    words = {
        "none": "not looked at",
        "all": "of every row",
        SUSPECT: "of rows that are suspect or have a small gap",
    }
    return words.get(of, f"of a share of the rows, {of}")


def _compared_elements(shard: Batch) -> set[int]:
    """Atomic numbers in rows with an atomisation energy, which confirms those of their atoms."""
    row = np.repeat(np.arange(len(shard)), np.diff(shard["atom_offset"]))
    return set(shard["numbers"][np.isfinite(shard["atomisation_energy"])[row]].tolist())


def _free_atoms(energies: Mapping[str, float], elements: set[int]) -> Iterator[tuple[str, object]]:
    """The energies of the free atoms that rows have, in eV."""
    shown = [
        f"{SYMBOLS[z]} {energies[SYMBOLS[z]] * HARTREE_TO_EV:.4f}"
        for z in sorted(elements)
        if SYMBOLS[z] in energies
    ]
    if shown:
        yield "free atoms", f"{', '.join(shown)} eV"


def _aligned(facts: Iterable[tuple[str, object]]) -> list[str]:
    return text_table(facts, "<12 <", indent="  ")


def _ranges(numbers: Iterable[np.ndarray]) -> Iterator[tuple[str, object]]:
    """Gaps of the converged rows in eV, AOs of all rows, errors of the audited rows in meV and
    meV/Angstrom."""
    gaps, sizes, errors, forces = numbers
    if gaps.size:
        yield "gap", _gap(gaps)
        yield "size", f"{sizes.min()} to {sizes.max()} AOs"
    known = np.abs(errors[np.isfinite(errors)])
    if known.size:
        yield (
            "audited",
            (
                f"{counted(known.size, 'row')}, energy against PySCF: mean {known.mean():.3f} meV, "
                f"largest {known.max():.3f} meV"
            ),
        )
    known = forces[np.isfinite(forces)]
    if known.size:
        where = f"{known.max():.3f} meV/A in {counted(known.size, 'row')}"
        yield "", f"forces against PySCF: largest difference {where}"


def _gap(gaps: np.ndarray) -> str:
    """The range of gaps in eV; helium in a minimal basis has no empty orbital, so no gap."""
    finite = gaps[np.isfinite(gaps)]
    if not finite.size:
        return "none: no converged row has one"
    without = (
        f", {counted(gaps.size - finite.size, 'row')} without" if finite.size < gaps.size else ""
    )
    median = np.median(finite)
    return f"{finite.min():.3f} to {finite.max():.3f} eV, median {median:.3f} eV{without}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_ID else f"{text[: LONGEST_ID - 3]}..."


def _last_step(energies: np.ndarray) -> str:
    """How far the last cycle moved the energy, in eV; NaN if fewer than two were kept."""
    step = energies[-1] - energies[-2] if len(energies) > 1 else np.nan
    return "NaN" if np.isnan(step) else f"{step * HARTREE_TO_EV:.1e}"


def _decimal(value: float | np.floating) -> str:
    return "NaN" if np.isnan(value) else f"{value:.4f}"
