"""What each part of a manifest may be: a file that people can edit is believed in nothing."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import get_args

from pyscf_ipu.elements.cartesian import MIXED
from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS
from pyscf_ipu.settings.choices import CHOICES, LEAST
from qm1b.errors import UserError
from qm1b.folder.manifest.work_units import WHOLE
from qm1b.rows.schema import FREE_ATOMS, PROPERTIES, Json
from qm1b.settings import Multiplicities, Padding

SCHEMA = "qm1b run, version 2"

COMPLETE = "complete"
RUNNING = "running"
"""Status of a run that is under way, or that was killed before it could say more."""
KILLED = "killed"
"""What is said of a run whose status is RUNNING but whose folder no process holds."""
STATUSES = (COMPLETE, RUNNING, "interrupted", "failed")

LEVEL_KEYS = ("functional_definition", "settings", "fingerprint", "versions", "input")
"""The parts that go into every shard and every exported file."""

LEVEL_OF_ALL = ("basis", "xc", "grid_level", "precision")
SETTINGS_OF_ALL = (*LEVEL_OF_ALL, "conformers", "seed", "max_aos")
"""Settings that every run has had."""
PARTS_OF_ALL = (*LEVEL_KEYS, "unit_lines", "status", "counts")
"""Parts that every manifest has had."""

MEND = "Run its `qm1b generate` command again to write a new one."

MOST = 2**62
"""Above every count, and small enough for Python's ranges."""


def check(values: object) -> Json:
    """A manifest, which may lack parts, if a run may have written what it has.

    Raises:
        UserError: the first part that is wrong, and what it must be.
    """
    if not isinstance(values, dict):
        raise UserError(f"the manifest is damaged: it is {shown(values)}. {MEND}")
    for problem in MANIFEST.problems(values, ""):
        raise UserError(f"the manifest is damaged: {problem}. {MEND}")
    return values


def complete(values: object) -> Json:
    """The manifest of a folder, which has every part that readers need; raises as `check`."""
    values = check(values)
    for problem in replace(MANIFEST, needed=PARTS_OF_ALL).problems(values, ""):
        raise UserError(f"the manifest is damaged: {problem}. {MEND}")
    return values


@dataclass(frozen=True)
class Kind:
    """The values that a part may have."""

    words: str
    """What it must be, for messages."""
    fits: Callable[[object], bool]

    def problems(self, value: object, name: str) -> Iterator[str]:
        """What is wrong with a value, one sentence each without a full stop."""
        if not self.fits(value):
            yield f"{name} is {shown(value)}: it must be {self.words}"


@dataclass(frozen=True)
class Object:
    """A JSON object by the names of its parts; others may be anything."""

    parts: Mapping[str, Kind | Object]
    needed: tuple[str, ...] = ()
    """Parts that may not be missing."""

    def problems(self, value: object, name: str) -> Iterator[str]:
        """The problems of a file, like those of a `Kind`."""
        if not isinstance(value, dict):
            yield f"{name} is {shown(value)}: it must be an object with {', '.join(self.parts)}"
            return
        of = f"{name}." if name else ""
        if lacking := [of + part for part in self.needed if part not in value]:
            yield f"it lacks {', '.join(lacking)}"
        for part, kind in self.parts.items():
            if part in value:
                yield from kind.problems(value[part], of + part)


def shown(value: object) -> str:
    """A value in a message: all of a number or text, but at most 40 characters."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        return "too long a number"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _whole(least: int, most: int = MOST) -> Kind:
    def fits(value: object) -> bool:
        return type(value) is int and least <= value <= most

    limit = f"of at least {least}" if most == MOST else f"from {least} to {most}"
    return Kind(f"a whole number {limit}", fits)


def _number(most: float = math.inf) -> Kind:
    def fits(value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return 0 <= value <= min(most, sys.float_info.max)

    limit = "that is not negative" if most == math.inf else f"from 0 to {most:g}"
    return Kind(f"a number {limit}", fits)


def _text(pattern: str = r".*", words: str = "text") -> Kind:
    def fits(value: object) -> bool:
        return isinstance(value, str) and re.fullmatch(pattern, value, re.DOTALL) is not None

    return Kind(words, fits)


def _one_of(*names: str) -> Kind:
    return Kind(f"one of {', '.join(names)}", lambda value: value in names)


def _or_null(kind: Kind) -> Kind:
    return Kind(f"{kind.words}, or null", lambda value: value is None or kind.fits(value))


def _list_of(spec: Kind | Object, words: str) -> Kind:
    def fits(value: object) -> bool:
        return isinstance(value, list) and not any(any(spec.problems(v, "")) for v in value)

    return Kind(f"a list of {words}", fits)


def _map_to(kind: Kind, names: Iterable[str] = ()) -> Kind:
    def fits(value: object) -> bool:
        if not isinstance(value, dict) or (names and not set(value) <= set(names)):
            return False
        return all(map(kind.fits, value.values()))

    return Kind(f"an object whose values are each {kind.words}", fits)


def _is_share(value: object) -> bool:
    parts = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", value) if isinstance(value, str) else None
    return parts is not None and int(parts[1]) < int(parts[2])


def _is_grid(value: object) -> bool:
    if isinstance(value, list):
        return len(value) == 2 and all(_whole(1).fits(n) for n in value)
    return _whole(0, 9).fits(value)


def _is_part(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(_whole(1).fits(n) for n in value)


def _is_cut(value: object) -> bool:
    return _whole(1).fits(value) or (bool(value) and _list_of(PART, "").fits(value))


def _is_workers(value: object) -> bool:
    return value is None or isinstance(value, str) or _whole(1).fits(value)


CART = Kind(f"true, false or {MIXED}", lambda value: isinstance(value, bool) or value == MIXED)
PART = Kind("two whole numbers of at least 1", _is_part)
TEXT, FLAG = _text(), Kind("true or false", lambda value: isinstance(value, bool))
NAME = _text(r".+", "a name")
COUNT = _whole(0)
GRID = Kind("a level from 0 to 9, or two positive integers", _is_grid)
ENERGY = Kind("a decimal number below zero", lambda e: isinstance(e, float) and -math.inf < e < 0)

SETTINGS = Object(
    {
        **dict.fromkeys(("basis", "xc"), NAME),
        **dict.fromkeys(("grid_level", "nlc_grid"), GRID),
        "cart": CART,
        **{name: _one_of(*names) for name, names in CHOICES.items()},
        **{name: _whole(least) for name, least in LEAST.items()},
        **dict.fromkeys(("prune", "history", "keep_charged", "retry", "forces"), FLAG),
        **dict.fromkeys(("one_stereoisomer", "run_vertices", "open_shells"), FLAG),
        "multiplicities": _one_of(*get_args(Multiplicities)),
        "machine": NAME,
        "properties": _text(rf"(({'|'.join(PROPERTIES)})( (?!$)|$))+", " ".join(PROPERTIES)),
        "jk_above_aos": COUNT,
        **dict.fromkeys(("conformers", "unit_rows"), _whole(1)),
        "units": _list_of(PART, "pairs: lines of a part, and of its units"),
        "seed": _whole(0, 2**63 - 1),
        "max_aos": _whole(1, 2**63 - 1),
        "limit": _or_null(_whole(1, 2**63 - 1)),
        **dict.fromkeys(("embed_timeout", "rattle_angstrom"), _number()),
        "relax": _one_of("none", "mmff", "uff"),
        "input_format": _one_of("auto", "smiles", "id_smiles", "table", "sdf", "xyz"),
        **dict.fromkeys(("smiles_column", "id_column"), _or_null(TEXT)),
        "stability": _text(r"none|all|suspect|[0-9.]+(e-[0-9]+)?", "none, all, suspect or a share"),
        "audit": _number(1.0),
        "padding": _one_of(*get_args(Padding)),
    },
    needed=SETTINGS_OF_ALL,
)

INPUT = Object(
    {"name": TEXT, "sha256": TEXT, "lines": COUNT, "skipped": _list_of(TEXT, "names")},
    needed=("name", "sha256", "lines", "skipped"),
)

COUNTS = Object(
    {
        **dict.fromkeys(("units", "lines_read", "molecules", "rows"), COUNT),
        **dict.fromkeys(("statuses", "dropped"), _map_to(COUNT)),
    },
    needed=("units", "lines_read", "molecules", "rows", "statuses", "dropped"),
)

PROGRAM = Object({"shape": TEXT, "seconds": _number(), "cached": FLAG})

RUN = Object(
    {
        "started": TEXT,
        "seconds": _number(),
        "starved_seconds": _number(),
        "rows": COUNT,
        "workers": Kind("a number of processes, an address or null", _is_workers),
        "cluster": _or_null(TEXT),
        "versions": _map_to(TEXT),
        "programs": _list_of(PROGRAM, "programs"),
        "troubles": _map_to(COUNT),
        "status": TEXT,
        "shard": TEXT,
        "merged": COUNT,
    }
)
"""A record of a run; one that merged folders has fewer parts."""

MANIFEST = Object(
    {
        "schema": _one_of(SCHEMA),
        "fingerprint": TEXT,
        "settings": SETTINGS,
        "functional_definition": TEXT,
        "input": INPUT,
        "unit_lines": Kind("a whole number of at least 1, or a list of parts", _is_cut),
        "shard": Kind(f"i/n with 0 <= i < n, as in {WHOLE}", _is_share),
        "versions": _map_to(TEXT),
        FREE_ATOMS: _map_to(ENERGY, ATOMIC_NUMBERS),
        "status": _one_of(*STATUSES),
        "counts": COUNTS,
        "runs": _list_of(RUN, "records of runs"),
    }
)

OWN_UNITS = _list_of(
    Object({"units": _list_of(COUNT, "units"), "versions": _map_to(TEXT), "input": INPUT}),
    "the attributes of single shards",
)
"""In an exported file: where shards differ from the manifest."""
