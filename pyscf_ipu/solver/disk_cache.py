"""JAX's compilation cache on disk: a program compiled once is loaded from then on.

Applications call `enable_disk_cache` (the `qm1b` command does); importing the library does not.
"""

import functools
import hashlib
import os
import platform
from pathlib import Path

import jax
import jax.monitoring

from pyscf_ipu.solver.cache_folder import checked_folder


def default_cache_directory() -> Path:
    """$PYSCF_IPU_CACHE, or pyscf_ipu/<processor> under $XDG_CACHE_HOME (default ~/.cache).

    Compiled code uses all that a processor has: machines that share a home folder must not share
    it, unless they are alike.
    """
    named = os.environ.get("PYSCF_IPU_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pyscf_ipu" / _processor()


def _processor() -> str:
    """A name for the instruction sets of this machine."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    flags = next((x for x in lines if x.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.machine()}-{hashlib.sha256(flags.encode()).hexdigest()[:8]}"


def enable_disk_cache(directory: str | Path | None = None) -> Path:
    """Keep every compiled program in `directory`; a setting of the whole process.

    Programs found there are run, so the folder is made for this user alone.

    Returns:
        The folder, without symbolic links.

    Raises:
        UntrustedCache: (an OSError) others own the directory or may write to it.
        OSError: the directory cannot be made.
        ValueError: PYSCF_IPU_CACHE_SHARED is neither on nor off.
    """
    path = checked_folder(Path(directory) if directory is not None else default_cache_directory())
    jax.config.update("jax_compilation_cache_dir", str(path))
    # By default JAX skips programs that compile quickly, and a run would compile them each time.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return path


class CacheHits:
    """Counts how often a program came from the disk cache in this process."""

    def __init__(self) -> None:
        self.count = 0
        jax.monitoring.register_event_listener(self._listen)

    def _listen(self, event: str, **_: object) -> None:
        if event == "/jax/compilation_cache/cache_hits":
            self.count += 1


@functools.lru_cache(maxsize=1)
def cache_hits() -> CacheHits:
    """The one counter of the process: JAX offers no way to take a listener back."""
    return CacheHits()
