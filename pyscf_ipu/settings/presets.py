"""The levels of theory of published datasets, by name.

A preset says how labels like those of a dataset are computed.  How exactly they agree with the
published ones, and what differs, is in docs/levels.md.  Grids are those of the program that made
the dataset where they are known, without pruning where that program prunes in another way than
PySCF or not at all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.nearest import did_you_mean
from pyscf_ipu.elements.cartesian import MIXED, Cart
from pyscf_ipu.elements.spellings import plain_name
from pyscf_ipu.settings.without_preset import WITHOUT_PRESET


@dataclass(frozen=True)
class Preset:
    """The level of a dataset, and what `qm1b generate` takes for its rows unless told otherwise."""

    level: Mapping[str, Any]
    """Fields of `Settings`."""
    dataset: str
    """What its authors call it."""
    rows: str
    """How many rows it has."""
    made_with: str
    """The program, and the level in the words of its input."""
    source: str
    """DOI or arXiv number."""
    conformers: int = 4
    """Conformers for each molecule."""
    max_aos: int | None = None
    """AOs of a molecule at most; None for as many as the machine's memory holds."""
    unit_rows: int = 128
    """Rows of a shard: what is lost if a run is killed is at most a few of these."""
    forces: bool = False
    """Whether its rows have forces."""


def _level(
    basis: str, xc: str, grid_level: int | tuple[int, int], cart: Cart = False, **others: Any
) -> Mapping[str, Any]:
    """Fields of `Settings`."""
    level = {"basis": basis, "xc": xc, "grid_level": grid_level, "cart": cart}
    usual = {"prune": True, "precision": "mixed", "grid_kind": "pyscf"}
    return MappingProxyType(level | usual | others)


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "qm1b": Preset(
            # PySCF 2.2.1, which its makers used, took VWN5 for `b3lyp`.
            _level("sto-3g", "b3lyp5", 0, precision="float32"),
            dataset="QM1B",
            rows="1.07 billion",
            made_with="PySCF-IPU: B3LYP (with VWN5)/STO-3G, grid level 0, float32",
            source="arXiv:2311.01135",
            conformers=1000,
            max_aos=128,
            unit_rows=1024,
        ),
        "qm9": Preset(
            _level(
                "6-31g(2df,p)", "b3lyp", (75, 302), cart=MIXED, prune=False, grid_kind="gaussian"
            ),
            dataset="QM9",
            rows="133,885",
            made_with="Gaussian 09: B3LYP/6-31G(2df,p), 6D 7F",
            source="doi:10.1038/sdata.2014.22",
            conformers=1,
        ),
        "pubchemqc": Preset(
            _level("6-31g*", "b3lyp", (96, 302), cart=True, prune=False),
            dataset="PubChemQC B3LYP/6-31G*//PM6",
            rows="85,938,443",
            made_with="GAMESS: B3LYPV1R/6-31G*, cartesian d",
            source="doi:10.1021/acs.jcim.3c00899",
            conformers=1,
        ),
        "ani1x": Preset(
            _level("6-31g*", "wb97x", (75, 302), cart=True, prune=False),
            dataset="ANI-1x",
            rows="4,956,005",
            made_with="Gaussian 09: wB97X/6-31G*, cartesian d",
            source="doi:10.1038/s41597-020-0473-z",
            forces=True,
        ),
        "transition1x": Preset(
            _level("6-31g*", "wb97x", 3),
            dataset="Transition1x",
            rows="9.6 million",
            made_with="ORCA 5.0.2: wB97X/6-31G(d), spherical d",
            source="doi:10.1038/s41597-022-01870-w",
            forces=True,
        ),
        "qmugs": Preset(
            _level("def2-svp", "wb97x-d", (75, 302), prune=False),
            dataset="QMugs",
            rows="1,992,984",
            made_with="Psi4: wB97X-D/def2-SVP, density fitting",
            source="doi:10.1038/s41597-022-01390-7",
            conformers=3,
        ),
        "rmd17": Preset(
            _level("def2-svp", "pbe", 5),
            dataset="rMD17",
            rows="about 1 million",
            made_with="ORCA: PBE/def2-SVP, very tight SCF, very fine grid",
            source="doi:10.1088/2632-2153/abba6f",
            forces=True,
        ),
        "qh9": Preset(
            # PySCF below 2.3 took VWN5 for `b3lyp`.
            _level("def2-svp", "b3lyp5", 3),
            dataset="QH9",
            rows="130,831 (stable)",
            made_with="PySCF 2.2: B3LYP (with VWN5)/def2-SVP, grid level 3",
            source="arXiv:2306.09549",
            conformers=1,
        ),
        "spice": Preset(
            _level("def2-tzvppd", "wb97m-d3bj", (75, 302), prune=False),
            dataset="SPICE 2",
            rows="2.0 million",
            made_with="Psi4: wB97M-D3(BJ)/def2-TZVPPD, density fitting",
            source="doi:10.1021/acs.jctc.4c00794",
            forces=True,
        ),
    }
)
"""By the name of `Settings.preset` and `qm1b generate --preset`."""


def name_of(level: Mapping[str, Any]) -> str | None:
    """The preset whose labels are of this level of theory, whatever the precision; None if none is.

    Args:
        level: fields of `Settings`.
    """
    for name, one in PRESETS.items():
        if all(level.get(key) == value for key, value in one.level.items() if key != "precision"):
            return name
    return None


def preset(name: str) -> Preset:
    """The preset of a name, of which case, hyphens, underscores and blanks do not count.

    Raises:
        UsageError: no preset has the name; for a known dataset without one the message says why.
    """
    if not isinstance(name, str):
        raise UsageError(f"preset is {name!r}: give one of {', '.join(PRESETS)}")
    plain = plain_name(name)
    if plain in PRESETS:
        return PRESETS[plain]
    if plain in WITHOUT_PRESET:
        raise UsageError(f"there is no preset {name!r}: {WITHOUT_PRESET[plain]}")
    meant = did_you_mean(plain, PRESETS)
    raise UsageError(f"unknown preset {name!r}{meant}: use one of {', '.join(PRESETS)}")
