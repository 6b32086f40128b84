"""Where the compiled programs of this package are kept on disk, each in a file of its own."""

import functools
import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

from pyscf_ipu.base.errors import UntrustedCache, UsageError
from pyscf_ipu.base.host.cache_folder import checked_folder

PLACE = "PYSCF_IPU_CACHE"
"""Environment variable: the folder of compiled programs, or "off" to keep none."""


def kept_in() -> Path | None:
    """The folder for programs, None for none; it need not exist.

    Raises:
        RuntimeError: this user has no home, and no folder is named.
    """
    return None if os.environ.get(PLACE) == "off" else default_cache_directory()


def default_cache_directory() -> Path:
    """$PYSCF_IPU_CACHE, or pyscf_ipu/<processor> under $XDG_CACHE_HOME (default ~/.cache).

    Compiled code uses all that a processor has: machines that share a home folder must not share
    it, unless they are alike.
    """
    named = os.environ.get(PLACE)
    if named and named != "off":
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pyscf_ipu" / processor()


def processor() -> str:
    """A name for the instruction sets of this machine."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    flags = next((x for x in lines if x.startswith(("flags", "Features"))), None) or _named()
    return f"{platform.machine()}-{hashlib.sha256(flags.encode()).hexdigest()[:8]}"


@functools.cache
def _named() -> str:
    """The processor where no file lists its instruction sets: its model on macOS ("Apple M2"),
    whose platform says "arm" of all of them."""
    asked = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    if sys.platform != "darwin" or not Path(asked[0]).exists():
        return platform.processor()
    answer = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return answer or platform.processor()


def enable_disk_cache(directory: str | Path | None = None) -> Path | None:
    """Keep programs in `directory`, in this process and those that it starts.

    Programs are kept anyway; this names the folder, and checks it now.  What is found in it is run,
    so it is made for this user alone.

    Args:
        directory: default `default_cache_directory()`, and none with PYSCF_IPU_CACHE=off.

    Returns:
        The folder, without symbolic links; None if nothing is kept.

    Raises:
        UntrustedCache: (an OSError) others own the directory or may write to it.
        OSError: the directory cannot be made.
        ValueError: PYSCF_IPU_CACHE_SHARED is neither on nor off.
    """
    folder = kept_in() if directory is None else Path(directory)
    if folder is None:
        return None
    path = checked_folder(folder)
    os.environ[PLACE] = str(path)
    return path


def keep_programs() -> None:
    """`enable_disk_cache` for commands.

    Raises:
        UntrustedCache: others own the directory or may write to it.
        UsageError: it cannot be made.
    """
    try:
        enable_disk_cache()
    except UntrustedCache:
        raise
    except OSError as error:
        raise UsageError(
            f"compiled programs cannot be kept in {error.filename} ({error.strerror}): set "
            "PYSCF_IPU_CACHE to a folder that can be written, or to off"
        ) from error
    except RuntimeError as error:
        raise UsageError(
            f"compiled programs cannot be kept ({error}): set PYSCF_IPU_CACHE to a folder or to off"
        ) from error
