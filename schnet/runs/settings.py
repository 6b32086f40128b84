"""All settings of a training: frozen dataclasses, which are both the options and the YAML file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

import yaml

from qm1b.folder.manifest.manifest_schema import shown
from qm1b.storage.files import write_text
from schnet.errors import UserError
from schnet.network.config import ModelConfig, Optimizer, Schedule
from schnet.samples.targets import target_of

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")

MOST_BYTES, MOST_DEPTH = 1 << 16, 16
"""Of a config.yaml, and of what lies within one another in it."""

LATER = {
    "rows.conformers_per_molecule": None,
    "rows.scaling": "fitted",
    "optimizer.decay_biases": False,
    "optimizer.schedule": "cosine",
    "optimizer.warmup_updates": 0,
    "optimizer.warmup_start": 0.0,
    "optimizer.rate_decay": 0.96,
    "optimizer.decay_updates": 10_000,
    "schedule.max_examples": 0,
    "schedule.stochastic_rounding": False,
}
"""Settings that runs of earlier versions do not have, and the values that change nothing."""


@dataclass(frozen=True)
class Data:
    """Which rows to learn from, and which property."""

    data: tuple[Path, ...] = ()
    """Folders of qm1b generate, .parquet or .extxyz(.gz) files."""
    target: str = "gap"
    """gap, energy, atomisation_energy, homo, lumo or dipole_norm; with forces forces+energy or
    forces+atomisation_energy."""
    key: str | None = None
    """Key of extended XYZ that holds the target, if its name does not say so."""
    unit: str | None = None
    """Unit of the target, if the name of its key does not say it: au, ev, mev, kcal_mol, kj_mol;
    debye, e_angstrom."""
    split: str = "0.8,0.1,0.1"
    """Training, validation and test: fractions of the molecules, or numbers of them."""
    valid_data: tuple[Path, ...] = ()
    """Files for validation, instead of a part of --data."""
    test_data: tuple[Path, ...] = ()
    """Files for testing, instead of a part of --data."""
    limit: int | None = None
    """Use only this many training rows; a larger number keeps the rows of a smaller one."""
    conformers_per_molecule: int | None = None
    """Use at most this many training rows of each molecule, chosen at random. With --limit,
    molecules are taken until there are that many rows: few conformers of many molecules, or many of
    few."""
    scaling: Literal["fitted", "none"] = "fitted"
    """What the network learns: the rest of the target after references that are fitted to the
    training rows, in units of its standard deviation; or the target itself, in eV (dipoles: e
    bohr)."""
    split_seed: int = 0
    """Seed of the split into training, validation and test rows."""


@dataclass(frozen=True)
class TrainSettings:
    """A training."""

    rows: Data = field(default_factory=Data)
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    init: Path | None = None
    """Run folder or checkpoint that gives the initial weights (fine-tuning)."""
    seed: int = 0
    """Seed of the initial weights and of the order of rows."""

    def check(self) -> None:
        """Raise UserError for settings that cannot be trained."""
        if not self.rows.data:
            raise UserError("no data to train on: give --data FILE_OR_FOLDER")
        each = self.rows.conformers_per_molecule
        if each is not None and each < 1:
            raise UserError(f"--conformers-per-molecule {each}: give 1 or more")
        for name, seed in (("seed", self.seed), ("split-seed", self.rows.split_seed)):
            if seed < 0:
                raise UserError(f"--{name} {seed}: give 0 or more")
        for part in (self.model, self.optimizer, self.schedule):
            part.check()

    def decisive(self) -> dict[str, object]:
        """The settings that decide the weights, flat; without time limits, which may change."""
        free = {"max_minutes", "checkpoint_minutes"}
        if not target_of(self.rows.target).has_forces:
            free.add("forces_weight")
        plain = flat(to_dict(self))
        unused = {name for name, idle in LATER.items() if plain[name] == idle}
        return {k: v for k, v in plain.items() if k.split(".")[-1] not in free and k not in unused}


def to_dict(settings: TrainSettings) -> dict[str, object]:
    """Settings as nested mappings for YAML and JSON, which have text for paths."""
    return json.loads(json.dumps(asdict(settings), default=str))


def flat(values: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """A nested mapping with dotted names."""
    names: dict[str, object] = {}
    for k, v in values.items():
        names |= flat(v, f"{prefix}{k}.") if isinstance(v, dict) else {prefix + k: v}
    return names


def write_yaml(path: Path, settings: TrainSettings) -> None:
    """Write settings to a file that `read_yaml` reads."""
    write_text(path, yaml.safe_dump(to_dict(settings), sort_keys=False))


def read_yaml(path: Path, kind: type[T]) -> T:
    """Read a dataclass of settings from a YAML file; missing settings have their defaults. Raises
    UserError if the file cannot be read or is no plain YAML, and as `structured`."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"--config {path} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise UserError(f"--config {path} is longer than {MOST_BYTES} bytes: it is no config.yaml")
    try:
        plain = _is_plain(yaml.parse(data, yaml.SafeLoader))
        values = yaml.safe_load(data) if plain else None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: of a date or a number
        raise UserError(f"--config {path} is not YAML: {str(error).splitlines()[0]}") from None
    if not plain:
        raise UserError(
            f"--config {path} has aliases, or mappings and lists within one another beyond "
            f"{MOST_DEPTH}: write each setting out, as `schnet train` does in config.yaml"
        )
    return structured(values or {}, kind, path)


def _is_plain(events: Iterable[yaml.Event]) -> bool:
    """Whether YAML has no alias, which a few bytes can multiply beyond all memory, and no depth."""
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH or isinstance(event, yaml.AliasEvent):
            return False
    return True


def structured(values: object, kind: type[T], path: Path) -> T:
    """A dataclass from the nested mappings of a file.

    Raises:
        UserError: a setting is unknown or of a wrong type; the message names every such setting.
    """
    from cattrs import BaseValidationError, transform_error

    try:
        return _converter().structure(values, kind)
    except (BaseValidationError, TypeError, AttributeError) as error:
        problems = [text.rpartition(" @ ") for text in transform_error(error, "", _problem)]
    lines = [f"{path}: {where[1:] or 'the file'} {text}." for text, _, where in problems]
    raise UserError("\n".join(lines))


@cache
def _converter() -> Converter:
    """Refuses unknown settings, and single values that would change their meaning."""
    from cattrs import Converter

    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook(int, _leaf("a whole number of 64 bits", _whole))
    converter.register_structure_hook(bool, _leaf("true or false", bool))
    converter.register_structure_hook(float, _leaf("a number", float))  # YAML reads 1e-4 as text
    converter.register_structure_hook(str, _leaf("text", str.__str__))
    converter.register_structure_hook(Path, _leaf("a path", Path))
    several = _leaf("a path or a list of paths", _paths)
    converter.register_structure_hook_func(lambda kind: kind == tuple[Path, ...], several)
    converter.register_structure_hook_func(lambda kind: get_origin(kind) is Literal, _one_of)
    return converter


def _leaf(name: str, convert: Callable[[Any], T]) -> Callable[[object, object], T]:
    def structure(value: object, _: object) -> T:
        try:
            if isinstance(value, bool) is not (convert is bool):  # Python counts it as a number
                raise TypeError
            return convert(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"is {shown(value)}, which is not {name}") from None

    return structure


def _whole(value: Any) -> int:
    number = index(value)
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number


def _paths(value: Any) -> tuple[Path, ...]:
    return tuple(Path(one) for one in ([value] if isinstance(value, str) else value))


def _one_of(value: object, kind: object) -> object:
    if value not in get_args(kind):
        raise ValueError(f"is {shown(value)}; allowed are {', '.join(map(str, get_args(kind)))}")
    return value


def _problem(error: BaseException, kind: object) -> str:
    from cattrs.errors import ForbiddenExtraKeysError

    if isinstance(error, ForbiddenExtraKeysError):
        allowed = ", ".join(f.name for f in fields(error.cl))
        unknown = ", ".join(map(repr, sorted(error.extra_fields, key=str)))
        return f"has no setting {unknown}; allowed are {allowed}"
    return str(error) if isinstance(error, ValueError) else "must be a mapping of settings"
