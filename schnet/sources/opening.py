"""From a path to a source: which kind it is, and whether it can give the target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from qm1b.store import MANIFEST

from ..errors import UserError
from ..targets import Target, target_of
from . import smiles, xyz
from .base import Source
from .several import Several

KINDS = (
    "a folder of qm1b generate, a .parquet file or a folder of them, an .extxyz or .xyz file "
    "(.gz too), or, for a prediction, a .smi file"
)


def open_source(
    path: str | Path | Sequence[str | Path],
    target: str | None,
    key: str | None = None,
    unit: str | None = None,
) -> Source:
    """Open a file or folder of molecules without reading its rows.

    Args:
        path: what holds the molecules, or several of them, which become one source.
        target: name of what is to be learned (`targets.TARGETS`); None for a prediction: then all
            rows are given, with NaN as their target.
        key: the key of extended XYZ that holds the target, where it is not found by itself.
        unit: the unit of a key that does not say its own.

    Returns:
        A source of `Samples` in atomic units.

    Raises:
        UserError: nothing there, of no known kind, without the target, or in an unknown unit.
    """
    wanted = None if target is None else target_of(target)
    if not isinstance(path, str | Path):
        if not path:
            raise UserError(f"no data was given; give {KINDS}.")
        paths = [Path(one) for one in path]
        if len(paths) == 1:
            return _open(paths[0], wanted, key, unit)
        return Several(paths[0].parent, [_open(one, wanted, key, unit) for one in paths])
    return _open(Path(path), wanted, key, unit)


def _open(path: Path, target: Target | None, key: str | None, unit: str | None) -> Source:
    if not path.exists():
        raise UserError(f"{path} does not exist; give {KINDS}.")
    if path.is_dir():
        return _open_folder(path, target, key, unit)
    if path.name.endswith(xyz.ENDINGS):
        return xyz.XyzSource(path, target, key, unit)
    if path.name.endswith(smiles.ENDINGS):
        if target is not None:
            raise UserError(f"{path} is a list of SMILES, which has no {target.name}; give others.")
        return smiles.SmilesSource(path)
    if path.suffix == ".parquet":
        from .tables import ParquetSource

        source = ParquetSource(path, target)
        _check_given(source, target, key, unit)
        return source
    raise UserError(f"{path} is of no known kind; give {KINDS}.")


def _open_folder(path: Path, target: Target | None, key: str | None, unit: str | None) -> Source:
    if (path / MANIFEST).exists():
        from .tables import RunSource

        source = RunSource(path, target)
        _check_given(source, target, key, unit)
        return source
    files = sorted(path.glob("*.parquet"))
    if not files:
        raise UserError(
            f"folder {path} has neither a {MANIFEST} of qm1b generate nor .parquet files; give "
            f"{KINDS}."
        )
    return Several(path, [_open(one, target, key, unit) for one in files])


def _check_given(source: Source, target: Target | None, key: str | None, unit: str | None) -> None:
    """What only extended XYZ asks for must not contradict a file that says everything itself."""
    if target is None:
        return
    if key is not None:
        raise UserError(f"--key is for extended XYZ; {source.path} has its own columns.")
    theirs = {name: text for name, text in source.units.items() if not name.startswith("pos")}
    for name, text in theirs.items():
        if unit is not None and not target.same_unit(text, unit):
            raise UserError(
                f"{source.path}: --unit is {unit!r}, but its column {name} is in {text}; leave "
                "--unit out."
            )
