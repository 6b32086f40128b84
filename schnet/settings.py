"""All settings of a training: one frozen dataclass, which is the command line and the YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import yaml

from .config import ModelConfig, Optimizer, Schedule
from .errors import UserError

Config = TypeVar("Config")


@dataclass(frozen=True)
class Data:
    """What is learned from which rows."""

    data: tuple[Path, ...] = ()
    """Folders of qm1b generate, .parquet or .extxyz(.gz) files."""
    target: str = "gap"
    """gap, energy, homo, lumo or dipole_norm."""
    key: str | None = None
    """Key of extended XYZ that holds the target, where it is not found by itself."""
    unit: str | None = None
    """Unit of a key that does not say its own: au, ev, mev, kcal_mol, kj_mol; debye, e_angstrom."""
    split: str = "0.8,0.1,0.1"
    """Training, validation and test: fractions, or numbers, of the molecules."""
    valid_data: tuple[Path, ...] = ()
    """Files for validation, in place of a part of --data."""
    test_data: tuple[Path, ...] = ()
    """Files for the test, in place of a part of --data."""
    limit: int | None = None
    """Use only so many training rows; fewer are a subset of more."""
    split_seed: int = 0
    """Of the division into training, validation and test."""


@dataclass(frozen=True)
class TrainSettings:
    """A training."""

    rows: Data = field(default_factory=Data)
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    init: Path | None = None
    """Run folder or checkpoint whose weights to start from (fine-tuning)."""
    seed: int = 0
    """Of the first weights and of the order of rows."""

    def check(self) -> None:
        """Raise UserError for settings that make no training."""
        if not self.rows.data:
            raise UserError("no data to train on: give --data FILE_OR_FOLDER.")
        for name, seed in (("seed", self.seed), ("split-seed", self.rows.split_seed)):
            if seed < 0:
                raise UserError(f"--{name} {seed}: give 0 or more.")
        for part in (self.model, self.optimizer, self.schedule):
            part.check()

    def decisive(self) -> dict[str, Any]:
        """What the weights depend on, flat; limits of time may change when a run goes on."""
        free = {"max_minutes", "checkpoint_minutes"}
        return {k: v for k, v in flat(to_dict(self)).items() if k.split(".")[-1] not in free}


def to_dict(settings: Any) -> dict[str, Any]:
    """A dataclass as what YAML and JSON know."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items()}
        if isinstance(value, tuple | list):
            return [plain(one) for one in value]
        return str(value) if isinstance(value, Path) else value

    return plain(asdict(settings))


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping with dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def read_yaml(path: Path, default: Config) -> Config:
    """Settings of a YAML file over the default ones.

    Raises:
        UserError: the file cannot be read, or names a setting that there is not.
    """
    try:
        values = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError(f"--config {path} cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"--config {path} is no YAML: {str(error).splitlines()[0]}.") from None
    return _over(default, values or {}, str(path), "")


def mentions(path: Path, *names: str) -> bool:
    """Whether a file that `read_yaml` has read sets this section, or this setting of it."""
    values = yaml.safe_load(path.read_text())
    for name in names:
        if not isinstance(values, Mapping) or name not in values:
            return False
        values = values[name]
    return True


def _over(default: Any, values: Any, path: str, section: str) -> Any:
    """A dataclass with some fields replaced."""
    if not isinstance(values, Mapping):
        raise UserError(f"{path}: {section or 'the file'} must be a mapping of settings.")
    hints = get_type_hints(type(default))
    known = {f.name: getattr(default, f.name) for f in fields(default)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            where = f" in section {section}" if section else ""
            raise UserError(
                f"{path}: {name!r} is no setting{where}; allowed are {', '.join(known)}."
            )
        if is_dataclass(known[name]):
            changes[name] = _over(known[name], value, path, name)
        else:
            changes[name] = _typed(hints[name], value, path, name)
    return replace(default, **changes)


def _typed(hint: Any, value: Any, path: str, name: str) -> Any:
    text = str(hint)
    if value is None and "None" in text:
        return None
    wrong = UserError(f"{path}: {name} is {value!r}, which is no {text}.")
    if value is None:
        raise wrong
    if get_origin(hint) is Literal:
        allowed = get_args(hint)
        if value not in allowed:
            raise UserError(f"{path}: {name} is {value!r}; allowed are {', '.join(allowed)}.")
        return value
    try:
        if "tuple" in text:
            return tuple(Path(one) for one in ([value] if isinstance(value, str) else value))
        if "Path" in text:
            return Path(value)
        if hint is float:
            return float(value)
        if hint is int or text.startswith("int |"):
            if int(value) == value:
                return int(value)
        elif isinstance(value, str) or hint is type(value):
            return value
    except (TypeError, ValueError):
        pass
    raise wrong


def write_yaml(path: Path, settings: Any) -> None:
    """The settings as a file that `read_yaml` reads."""
    path.write_text(yaml.safe_dump(to_dict(settings), sort_keys=False))
