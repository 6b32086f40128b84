"""Limits that the pages state in words are those of the code."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from pyscf_ipu import Settings
from pyscf_ipu.api.optimize import FORCE_LIMIT
from pyscf_ipu.elements import basis_sets
from pyscf_ipu.elements.auxiliary import choice
from pyscf_ipu.elements.spellings import MAX_ATOMIC_NUMBER, SYMBOLS
from pyscf_ipu.grid.blocks import KEPT_BYTES
from pyscf_ipu.molecule.checks import MIN_DISTANCE_BOHR
from pyscf_ipu.molecule.files import opening
from pyscf_ipu.molecule.files.wrong_unit import (
    ANGSTROM_RATIOS,
    BOHR_RATIOS,
    COVALENT_RADII_ANGSTROM,
)
from pyscf_ipu.settings import PRESETS
from pyscf_ipu.settings.level import AUTO_AOS
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.solver import batches, memory, platform, shared
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS
from qm1b.conformers import embed, embedding, rattle
from qm1b.convert import hub
from qm1b.inputs import tables
from qm1b.screening import geometries, limits

ROOT = Path(__file__).parents[1]
NOTEBOOKS = [*ROOT.glob("notebooks/*.ipynb")]
HEAVIEST = SYMBOLS[MAX_ATOMIC_NUMBER]
LETTERS = "spdfghik"
SHELLS = ", ".join(LETTERS[: basis_sets.MAX_L]) + " and " + LETTERS[basis_sets.MAX_L]
NEAR = (MIN_DISTANCE_BOHR["float32"], MIN_DISTANCE_BOHR["mixed"])


def gigabytes(carbons, hydrogens):
    """The estimated peak of a process in B3LYP/6-31G*, in GB."""
    settings = Settings(basis="6-31g*", grid_level=1)
    numbers = [6] * carbons + [1] * hydrogens
    shape = shape_of(numbers, settings.basis, settings.cart, settings.grid, pad=False)
    return shape.n_ao, memory.program_bytes(shape, settings) / 1e9


def of_154_aos():
    """What nine heavy atoms need."""
    n_ao, needed = gigabytes(9, 14)
    assert n_ao == 154
    return needed


def of_300_aos():
    """What a molecule of twice the size would need."""
    n_ao, needed = gigabytes(18, 24)
    assert n_ao == 300
    return needed


STATED = [
    ("README.md", "Elements H to {} where the basis has them; {} shells", [HEAVIEST, SHELLS]),
    ("README.md", "a float32 process peaks at {} GB at 154 AOs", [of_154_aos]),
    ("docs/faq.md", "with elements beyond {},", [HEAVIEST]),
    ("docs/faq.md", "or one with {} shells, raises", [LETTERS[basis_sets.MAX_L + 1]]),
    ("docs/faq.md", "atoms closer than {} Bohr in `float32`, {} Bohr in `mixed`", NEAR),
    (
        "docs/faq.md",
        "AO values of more than {} MB (without codelets {} GB",
        [round(KEPT_BYTES[True] / 1e6), round(KEPT_BYTES[False] / 1e9)],
    ),
    ("docs/faq.md", "a float32 process peaked at {} GB", [of_154_aos]),
    ("docs/faq.md", "and {} MiB for the process", [memory.BASE_BYTES / 2**20]),
    ("docs/faq.md", "need more than {} % of the memory", [100 * platform.MEMORY_SHARE]),
    ("docs/levels.md", "shape has more than {} AOs", [AUTO_AOS]),
    (
        "docs/levels.md",
        "6-31G*) need {} GB, and 300 would need {}",
        [of_154_aos, of_300_aos],
    ),
    ("docs/levels.md", "have shells up to {}.", [LETTERS[choice.MAX_L]]),
    ("docs/levels.md", "Sets with {} shells are refused", [LETTERS[choice.MAX_L + 1]]),
    ("docs/library.md", "for shapes of more than {} AOs", [AUTO_AOS]),
    ("docs/library.md", "with {} shells; `6-31g", [SHELLS]),
    ("docs/library.md", "a bar appears after {} seconds", [batches.PATIENCE_SECONDS]),
    ("docs/library.md", "The solvers of the last {} levels", [shared.MOST]),
    ("docs/design.md", "as long as it has only {} shells", [SHELLS]),
    ("docs/library.md", "and {} shells, as for energies", [SHELLS]),
    ("docs/library.md", "The default limit is {} Hartree/Bohr", [FORCE_LIMIT]),
    ("docs/numerics.md", "**Atoms closer than {} Bohr**", NEAR[:1]),
    ("docs/inputs.md", "coordinates beyond {} Å", [geometries.MAX_COORDINATE_ANGSTROM]),
    ("docs/inputs.md", "atoms closer than {} Bohr ({} in `mixed`", NEAR),
    ("docs/inputs.md", "If this ratio is {} to {} for *all*", BOHR_RATIOS),
    ("docs/inputs.md", "if it is {} to {} for all", ANGSTROM_RATIOS),
    ("docs/inputs.md", "with elements beyond {}.", [SYMBOLS[max(COVALENT_RADII_ANGSTROM)]]),
    ("docs/inputs.md", "does not end within {} lines", [tables.QUOTED_LINES]),
    ("docs/inputs.md", "A line of more than {} characters", [opening.MAX_LINE]),
    ("docs/inputs.md", "seconds plus {} s per conformer", [embed.SECONDS_PER_CONFORMER]),
    ("docs/inputs.md", "in chunks of {} conformers", [embedding.CHUNK]),
    ("docs/inputs.md", "must stop after {} % of that time", [100 * embed.RDKIT_SHARE]),
    ("docs/inputs.md", "with MMFF94, in at most {} steps", [embedding.RELAX_STEPS]),
    ("docs/inputs.md", "closer than {} of the sum of their covalent radii", [rattle.CLOSEST]),
    ("docs/inputs.md", "is drawn again, at most {} times", [rattle.DRAWS]),
    ("docs/inputs.md", "accepts ions, up to ±{} e", [limits.MAX_CHARGE]),
    ("README.md", "and [{} others](docs/levels.md)", [len(PRESETS) - 1]),
    ("README.md", "{} [notebooks](notebooks/README.md)", [len(NOTEBOOKS)]),
    ("notebooks/README.md", "{} tutorials that run", [len(NOTEBOOKS)]),
    ("docs/library.md", "`wb97x`, and [{} others]", [len(FUNCTIONALS) - 8]),
    ("docs/exports.md", "about {} rows of lines drawn at random", [hub.SAMPLE_ROWS]),
]
"""Page, phrase with a place for each limit, and the limits; a call is an estimate."""


def number(text):
    """A number as the pages write it."""
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    words += ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen")
    text = text.lower()
    return float(words.index(text)) if text in words else float(text.replace(",", ""))


@pytest.mark.parametrize(("page", "phrase", "values"), STATED)
def test_a_limit_in_words_is_the_constant(page, phrase, values):
    text = (ROOT / page).read_text()
    words = [r"([\w, ]+?)" if isinstance(value, str) else r"([\w.,-]*\w)" for value in values]
    matches = re.findall(re.escape(phrase).replace(r"\{\}", "{}").format(*words), text)
    assert len(matches) == 1, f"{page} does not say once: {phrase}"
    stated = matches[0] if isinstance(matches[0], tuple) else (matches[0],)
    for written, value in zip(stated, values, strict=True):
        if isinstance(value, str):
            assert written == value
        elif callable(value):
            assert number(written) == pytest.approx(value(), rel=0.15)
        else:
            assert number(written) == pytest.approx(value)


def test_the_table_of_thresholds_is_that_of_the_code():
    """Every number of `scf/` that decides something, too."""
    text = (ROOT / "docs" / "numerics.md").read_text()
    rows = dict(re.findall(r"^\| `([\w.]+\.[A-Z_0-9]+)` \| (\S+) \|", text, re.MULTILINE))
    for name, value in rows.items():
        module, _, constant = name.rpartition(".")
        assert getattr(import_module(f"pyscf_ipu.{module}"), constant) == float(value), name
    numbers = {
        f"{path.relative_to(ROOT / 'pyscf_ipu').with_suffix('').as_posix().replace('/', '.')}.{n}"
        for path in (ROOT / "pyscf_ipu" / "scf").rglob("*.py")
        for names in re.findall(r"^([A-Z][A-Z_]+(?:, [A-Z_]+)*) = [-\d]", path.read_text(), re.M)
        for n in names.split(", ")
    }
    assert numbers - rows.keys() == NOT_THRESHOLDS


NOT_THRESHOLDS = {
    "scf.run.ENERGY_WINDOW",  # QM1B's definition
    "scf.orbitals.DROPPED_SHIFT",  # out of the way of all levels
    "scf.orbitals.NOTHING",
    "scf.lowest.descent.OCCUPIED_BELOW",
    "scf.lowest.rotation.FAR_ABOVE",
    "scf.lowest.rotation.SMALLEST_SHARE",
}
"""Numbers of `scf/` that decide nothing: any value far enough away gives the same."""
