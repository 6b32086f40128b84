"""What the files of a folder hold, without times: equal for two runs that did the same."""

import csv
import hashlib
import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from pyscf_ipu.base.host.cache_folder import CHECKSUM_BYTES
from qm1b.folder import checksum, shards

TIMES = ("started", "seconds", "starved_seconds", "runs", "created", "date", "dateModified")
"""Fields of JSON that say when, and how long."""

TIME_COLUMNS = ("seconds", "graphs_per_s")
FREE = (".lock", "workers.log", "out.trace.json")
"""Files that say what a process did: they may hold anything, and may be there or not."""

GROWING = ("dropped.csv", "log.csv")
"""Files that get longer, line by line."""


class Torn(Exception):
    """A file is not whole."""


def of_folder(folder: Path) -> dict[str, str]:
    """By the path of each file, a digest of what it holds (of GROWING, the lines), or `torn`."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_file() and path.name not in FREE and not is_event(name):
            try:
                digests[name] = _digest(path)
            except Torn as error:
                digests[name] = f"torn: {error}"
        elif is_hidden(name) and path.is_dir():
            digests[f"{name}/"] = "folder"
    return digests


def is_hidden(name: str) -> bool:
    """Whether a path is one of a file that is still being written."""
    parts = Path(name).parts
    return any(part.startswith(".") or part.endswith(".tmp") for part in parts)


def is_event(name: str) -> bool:
    """Whether a file is one of TensorBoard's, which are only appended to."""
    return ".tfevents." in name


def _lines(path: Path) -> list[str]:
    """The lines of a table, without times."""
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return [json.dumps({k: v for k, v in row.items() if k not in TIME_COLUMNS}) for row in rows]


def _digest(path: Path) -> str:
    if path.name.startswith("shard-") and path.suffix == ".h5":
        return _of_text(_shard(path))
    if path.suffix == ".json":
        return _of_text(json.dumps(_timeless(_json(path)), sort_keys=True))
    if path.suffix == ".ckpt":
        return _checkpoint(path)
    if path.name.startswith("program-"):
        return _program(path)
    if path.suffix == ".db":
        return _database(path)
    if path.name in GROWING:
        return "\n".join(_lines(path))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise Torn(str(error)) from None


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k not in TIMES}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def _shard(path: Path) -> str:
    try:
        _, rows, drops = shards.read_whole(path)
    except checksum.Damaged as error:
        raise Torn(str(error)) from None
    return repr(drops) + repr([(name, rows[name].tolist()) for name in sorted(rows.columns)])


def _checkpoint(path: Path) -> str:
    line, _, body = path.read_bytes().partition(b"\n")
    try:
        digest = json.loads(line)["sha256"]
    except (ValueError, KeyError) as error:
        raise Torn(str(error)) from None
    if digest != hashlib.sha256(body).hexdigest():
        raise Torn("a checkpoint of another checksum")
    return digest


def _program(path: Path) -> str:
    """One compiled program is as good as another."""
    try:
        return str(len(zlib.decompress(path.read_bytes()[CHECKSUM_BYTES:])) > 0)
    except zlib.error as error:
        raise Torn(str(error)) from None


def _database(path: Path) -> str:
    """The rows, which have the time when they were written."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            names = [name for _, name, *_ in database.execute("PRAGMA table_info(systems)")]
            names.remove("mtime")
            rows = database.execute(f"SELECT {','.join(names)} FROM systems ORDER BY id")
            others = database.execute("SELECT * FROM information ORDER BY name")
            return _of_text(repr([*rows, *others]))
    except sqlite3.Error as error:
        raise Torn(str(error)) from None


def _of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
