"""Where compiled programs are kept on disk.

Programs of this package are kept without being asked for, each in a file of its own.  Applications
also call `enable_disk_cache`, which keeps everything else that JAX compiles in their process.
"""

import hashlib
import os
import platform
from pathlib import Path

import jax

from pyscf_ipu.host.cache_folder import checked_folder

PLACE = "PYSCF_IPU_CACHE"
"""Environment variable: the folder of compiled programs, or "off" to keep none."""


def kept_in() -> Path | None:
    """The folder for this package's programs, None for none; it need not exist.

    One that was given to JAX counts first, then `default_cache_directory`.
    """
    if os.environ.get(PLACE) == "off":
        return None
    given = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    return Path(given) if given else default_cache_directory()


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
    flags = next((x for x in lines if x.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.machine()}-{hashlib.sha256(flags.encode()).hexdigest()[:8]}"


def enable_disk_cache(directory: str | Path | None = None) -> Path | None:
    """Keep all that JAX compiles in `directory`; a setting of the whole process.

    Without it only the programs of this package are kept.  What is found in the folder is run, so
    the folder is made for this user alone.

    Args:
        directory: default `default_cache_directory()`, and none with PYSCF_IPU_CACHE=off.

    Returns:
        The folder, without symbolic links; None if nothing is kept.

    Raises:
        UntrustedCache: (an OSError) others own the directory or may write to it.
        OSError: the directory cannot be made.
        ValueError: PYSCF_IPU_CACHE_SHARED is neither on nor off.
    """
    if os.environ.get(PLACE) == "off":
        return None
    path = checked_folder(Path(directory) if directory is not None else default_cache_directory())
    jax.config.update("jax_compilation_cache_dir", str(path))
    # By default JAX skips programs that compile quickly, and a run would compile them each time.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return path
