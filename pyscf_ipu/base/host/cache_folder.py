"""The folder of compiled programs: made for its owner alone, and refused if others may write to it.

An entry is native code, which a process that finds it runs.  Whoever can write to the folder or to
an entry can therefore act as every user of it.
"""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from pyscf_ipu.base.errors import UntrustedCache, UsageError

SHARED = "PYSCF_IPU_CACHE_SHARED"
"""Environment variable: "on" uses a folder although others may write to it."""

CHECKSUM_BYTES = 32  # SHA-256
ROOT = 0
PRIVATE, PRIVATE_FILE = 0o700, 0o600


def checked_folder(path: Path) -> Path:
    """Make a folder unless it is there, and check whose it is.

    Returns:
        Where it really is: a link that is changed later leads nowhere else.

    Raises:
        UntrustedCache: (an OSError) others own it or may write to it.
        OSError: it cannot be made.
        UsageError: PYSCF_IPU_CACHE_SHARED is neither on nor off.
    """
    must_trust = not _is_shared()
    path = Path(os.path.realpath(path))
    make_private(path)
    if must_trust:
        # lstat: nobody may have put a link there since.
        problem = distrust(path.lstat(), os.geteuid(), is_private_group)
        if problem:
            why, mend = problem
            raise UntrustedCache(_sentence(path, why, mend))
    return path


def read_trusted(path: Path) -> bytes:
    """The content of a program's file, which may have been there before its folder was private.

    Raises:
        UntrustedCache: (an OSError) others own it or may write to it.
        OSError: it cannot be read, or is no plain file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(f"{path} is no plain file")
        problem = None if _is_shared() else distrust(info, os.geteuid(), is_private_group)
        if problem:
            raise UntrustedCache(f"{path} {problem[0]}: it may hold code that others put there")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def with_checksum(key: bytes, body: bytes) -> bytes:
    """What to write for a body: in front of it a checksum of it and of what it is for.

    A file's name is only a hash of its key, so a file that was renamed or copied shows, too.
    """
    return _checksum(key, body) + body


def without_checksum(key: bytes, content: bytes) -> bytes | None:
    """The body in what `with_checksum` gave; None if it is damaged, or is that of another key."""
    checksum, body = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    return body if checksum == _checksum(key, body) else None


def _checksum(key: bytes, body: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key).digest() + body).digest()


def _is_shared() -> bool:
    shared = os.environ.get(SHARED, "off")
    if shared not in ("on", "off"):
        raise UsageError(f"{SHARED}={shared}: set it to on or off")
    return shared == "on"


def make_private(path: Path) -> None:
    """Make a folder and those above it, open to this user alone; those that exist stay as they are.

    The umask is no help: with 000 or 002, as many machines have it, others could replace a folder.
    """
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(mode=PRIVATE, exist_ok=True)  # another process may be making it, too
    if not path.is_dir():
        raise NotADirectoryError(20, "not a directory", str(path))


def distrust(
    info: os.stat_result, user: int, is_private: Callable[[int], bool]
) -> tuple[str, str] | None:
    """Why a folder or file cannot be trusted, and the command that mends it ({} is its path).

    The superuser can do everything anyway, so a folder of root is as good as the user's own.

    Args:
        info: what the system says about it.
        user: number of the user of this process.
        is_private: whether a group has no other member than this user.
    """
    if info.st_uid not in (user, ROOT):
        whose = f"belongs to another user (uid {info.st_uid}, you are {user})"
        return whose, f"sudo chown -R {user} {{}}"
    if info.st_mode & stat.S_IWOTH:
        return "can be written to by everybody", "chmod go-w {}"
    if info.st_mode & stat.S_IWGRP and not is_private(info.st_gid):
        return f"can be written to by its group (gid {info.st_gid})", "chmod g-w {}"
    return None


def is_private_group(group: int) -> bool:
    """Whether a group is this user's own: most systems make one of the same name for each user."""
    import grp
    import pwd

    try:
        group_entry = grp.getgrgid(group)
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # no such entry, as in a container with a user number of its own
        return False
    return group_entry.gr_name == user and set(group_entry.gr_mem) <= {user}


def _sentence(path: Path, why: str, mend: str) -> str:
    return (
        f"the folder for compiled programs, {path}, {why}: the programs in it are native code, "
        "which would run with your rights. Delete what others may have put there and run "
        f"`{mend.format(path)}`, or set PYSCF_IPU_CACHE to a folder of your own, or to off. If you "
        f"trust all who can write there, set {SHARED}=on"
    )
