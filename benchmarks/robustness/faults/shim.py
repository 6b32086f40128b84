"""The library that strikes (shim.c), compiled on the spot, and the page with its orders."""

import ctypes
import errno
import mmap
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

OFF, RECORD, FAIL = range(3)
KILL = "kill"
FAULTS = {KILL: 0, "EIO": errno.EIO, "ENOSPC": errno.ENOSPC}
"""What happens at an operation, and the number by which shim.c knows it."""

TAKES_ROOM = ("open", "write", "sync", "close", "rename", "mkdir", "truncate", "link")
"""Operations that may fail because a disk is full."""

CHANGE_NOTHING = ("close", "lock")
"""Operations before which a kill leaves what it leaves before the next one."""


class Site(NamedTuple):
    """An operation on a kind of file."""

    operation: str
    pattern: str
    """Path below the trial's folder: digits are #, random parts *."""

    def __str__(self) -> str:
        return f"{self.operation} {self.pattern}"

    @property
    def faults(self) -> list[str]:
        """What may happen here."""
        changes, room = self.operation not in CHANGE_NOTHING, self.operation in TAKES_ROOM
        return [KILL] * changes + ["EIO"] + ["ENOSPC"] * room


class _Orders(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int) for name in ("mode", "error", "nth", "count", "fired")),
        *(("operation", ctypes.c_char * 16), ("pattern", ctypes.c_char * 256)),
        *(("root", ctypes.c_char * 512), ("log", ctypes.c_char * 512)),
    ]


class Page:
    """The orders, which all processes of a trial share."""

    def __init__(self, path: Path) -> None:
        """Make the file, or map the one that is there."""
        if not path.exists():
            path.write_bytes(bytes(ctypes.sizeof(_Orders)))
        with open(path, "r+b") as file:
            self._orders = _Orders.from_buffer(mmap.mmap(file.fileno(), 0))

    def _give(self, **values: object) -> None:
        self._orders.mode = OFF
        for name, value in {"count": 0, "fired": 0, **values}.items():
            setattr(self._orders, name, value)

    def off(self) -> None:
        """Watch nothing."""
        self._orders.mode = OFF

    def record(self, root: Path, log: Path) -> None:
        """Write the operations below a folder to a log."""
        self._give(root=bytes(root), log=bytes(log))
        self._orders.mode = RECORD

    def fail(self, root: Path, site: Site, nth: int, fault: str) -> None:
        """Strike at the nth operation of a site; after ENOSPC the disk stays full."""
        operation, pattern = (text.encode() for text in site)
        self._give(root=bytes(root), operation=operation, pattern=pattern, nth=nth)
        self._orders.error = FAULTS[fault]
        self._orders.mode = FAIL

    @property
    def fired(self) -> bool:
        """Whether the operation was reached."""
        return bool(self._orders.fired)


def recorded(log: Path) -> Counter[Site]:
    """The sites in a log, each with the number of its operations."""
    lines = log.read_text().splitlines() if log.exists() else []
    return Counter(Site(*line.split(" ", 1)) for line in lines)


def library(folder: Path) -> Path:
    """Compile shim.c to a folder; raises SystemExit where there is no compiler."""
    made, compiler = folder / "shim.so", shutil.which("cc")
    if compiler is None:
        raise SystemExit("the faults need a C compiler named cc: install one (gcc or clang)")
    source = Path(__file__).with_name("shim.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made
