"""The levels of theory of published datasets and of composite methods, by name.

A preset says how labels like those of a dataset are computed; `presets.toml` has all of them.  How
exactly they agree with the published ones, and what differs, is in docs/levels.md.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.nearest import did_you_mean
from pyscf_ipu.elements.spellings import plain_name
from pyscf_ipu.settings.choices import plain


@dataclass(frozen=True)
class Preset:
    """The level of a dataset or a method, and what `qm1b generate` takes for its rows unless told
    otherwise."""

    level: Mapping[str, Any]
    """Fields of `Settings`."""
    dataset: str
    """What its authors call it."""
    made_with: str
    """The program, and the level in the words of its input; what a method consists of."""
    source: str
    """DOI or arXiv number."""
    rows: str = ""
    """How many rows it has; "" for a method."""
    conformers: int = 4
    """Conformers for each molecule."""
    max_aos: int | None = None
    """AOs of a molecule at most; None for as many as the machine's memory holds."""
    forces: bool = False
    """Whether its rows have forces."""


EXACT = "exact"
"""`Settings.jk` where a preset says nothing."""
USUAL = {"cart": False, "prune": True, "precision": "mixed", "grid_kind": "pyscf"}
"""What a level has unless its preset says otherwise."""


def _level(values: dict[str, Any]) -> Mapping[str, Any]:
    """Fields of `Settings`."""
    return MappingProxyType({name: plain(value) for name, value in {**USUAL, **values}.items()})


_TABLES = tomllib.loads(
    files("pyscf_ipu").joinpath("settings", "presets.toml").read_text(encoding="utf-8")
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        name: Preset(**{**row, "level": _level(row["level"])})
        for name, row in (_TABLES["presets"] | _TABLES["methods"]).items()
    }
)
"""By the name of `Settings.preset` and `qm1b generate --preset`."""

WITHOUT_PRESET: Mapping[str, str] = MappingProxyType(_TABLES["without"])
"""Datasets that have no preset, by the plain name (`plain_name`), and why."""


def name_of(level: Mapping[str, Any]) -> str | None:
    """The preset whose labels are of this level of theory; None if none is.

    The precision does not count.  A preset that fits densities is recognised without the fit, too.

    Args:
        level: fields of `Settings`.
    """
    for name, one in PRESETS.items():
        counted = one.level.keys() - {"precision", "jk"}
        is_form = level.get("jk", EXACT) in (EXACT, one.level.get("jk", EXACT))
        if is_form and all(level.get(key) == one.level[key] for key in counted):
            return name
    return None


def preset(name: str) -> Preset:
    """The preset of a name, of which case, hyphens, underscores and blanks do not count.

    Raises:
        UsageError: no preset has the name; for a known dataset without one the message says why.
    """
    if not isinstance(name, str):
        raise UsageError(f"preset is {name!r}: give one of {', '.join(PRESETS)}")
    key, by_plain_name = plain_name(name), {plain_name(one): one for one in PRESETS}
    if key in by_plain_name:
        return PRESETS[by_plain_name[key]]
    if key in WITHOUT_PRESET:
        raise UsageError(f"there is no preset {name!r}: {WITHOUT_PRESET[key]}")
    meant = did_you_mean(key, PRESETS)
    raise UsageError(f"unknown preset {name!r}{meant}: use one of {', '.join(PRESETS)}")
