"""From a path to a source: finds its kind, and checks that it has the target."""

from collections.abc import Sequence
from pathlib import Path

from qm1b.folder.shards import MANIFEST
from qm1b.inputs.detect import opened
from schnet.errors import UserError
from schnet.samples.targets import FORCES, Target, target_of
from schnet.sources.base import Several, Source
from schnet.sources.records import RecordSource
from schnet.sources.xyz import XyzSource

KINDS = (
    "a folder of qm1b generate, a .parquet file or a folder of them, an .extxyz or .xyz file, "
    "packed or not, or, for a prediction, whatever qm1b generate reads"
)


def open_source(
    path: str | Path | Sequence[str | Path],
    target: str | None,
    key: str | None = None,
    unit: str | None = None,
) -> Source:
    """Open a file or folder of molecules without reading its rows.

    Args:
        path: a file or folder of molecules, or several, which become one source.
        target: name of the property to learn (`targets.TARGETS`); None for a prediction, which
            takes all rows, with NaN as their target.
        key: key of extended XYZ that holds the target, if its name does not say so.
        unit: unit of a key whose name does not say it.

    Returns:
        A source of `Samples` in atomic units.

    Raises:
        UserError: the file does not exist, is of no known kind, lacks the target, or has it in an
            unknown unit.
    """
    wanted = None if target is None else target_of(target)
    if isinstance(path, str | Path):
        return _open(Path(path), wanted, key, unit=unit)
    if not path:
        raise UserError(f"no data was given; give {KINDS}")
    paths = [Path(one) for one in path]
    sources = [_open(one, wanted, key, unit=unit) for one in paths]
    return sources[0] if len(sources) == 1 else Several(paths[0].parent, sources)


def _open(path: Path, target: Target | None, key: str | None, unit: str | None) -> Source:
    if not path.exists():
        raise UserError(f"{path} does not exist; give {KINDS}")
    is_run = (path / MANIFEST).exists()
    if path.is_dir() and not is_run:
        # A folder of `qm1b export --format hub` has its parts in data/.
        files = sorted(path.glob("*.parquet")) or sorted(path.glob("data/*.parquet"))
        if not files:
            raise UserError(
                f"folder {path} has neither a {MANIFEST} of qm1b generate nor .parquet files; give "
                f"{KINDS}"
            )
        return Several(path, [_open(one, target, key, unit=unit) for one in files])
    if is_run or path.suffix == ".parquet":
        from schnet.sources.tables import ParquetSource, RunSource

        source = RunSource(path, target) if is_run else ParquetSource(path, target)
        if target is not None:
            _check_given(source, target, key, unit=unit)
        return source
    with opened(path) as (source, kind):
        if kind == "xyz" and not source.is_archive:
            return XyzSource(path, target, key, unit=unit)
    if target is not None:
        raise UserError(f"{path} is no kind of file that has {target.name}; give {KINDS}")
    return RecordSource(path, kind)


def _check_given(source: Source, target: Target, key: str | None, unit: str | None) -> None:
    """Refuse a --key, and a --unit other than the file's own."""
    if key is not None:
        raise UserError(f"--key is for extended XYZ; {source.path} has its own columns")
    for name, own in source.units.items():
        if unit is None or name.startswith("pos") or name == FORCES:
            continue
        if not target.same_unit(own, unit):
            raise UserError(
                f"{source.path}: --unit is {unit!r}, but its column {name} is in {own}; leave "
                "--unit out"
            )
