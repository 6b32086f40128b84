"""How much memory this process may use: the machine's, its container's or its batch job's."""

import ctypes
import os
import resource
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

CGROUPS = "sys/fs/cgroup"
V1 = (("memory",), ("memory.limit_in_bytes",))
V2 = ((".", "unified"), ("memory.max", "memory.high"))
"""Where control groups of a version are mounted (the second place beside version 1), and the files
that say a group's limits; above the last of version 2 it is slowed down until it stands still."""

SLURM_UNIT = 2**20

UNUSED, UNUSED_OF_CORE = 3 * 2**29, 72 * 2**20
"""Addresses that a process with JAX reserves and never fills, and those of every core's thread."""


def available_bytes(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> int:
    """Memory of this machine, or the lowest limit that this process is under.

    It does not depend on what the machine does just now; see `free_bytes`.

    Args:
        root: of the file system that says the limits.
        environment: says those of Slurm.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_of_cgroups(root), *_of_slurm(environment), *_of_process()])


def free_bytes(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> int:
    """The part of `available_bytes` that nobody uses at the moment.

    The kernel counts what it can take back, its caches, as free.  Linux alone says it.
    """
    limit = available_bytes(root, environment)
    words = _text(root / "proc/meminfo").partition("MemAvailable:")[2].split()
    return min(limit, int(words[0]) * 1024) if words and words[0].isdecimal() else limit


def return_memory() -> None:
    """Give memory that was freed back to the machine: the compiler leaves hundreds of MB behind.

    Only the C library of GNU has to be told.
    """
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


def _of_cgroups(root: Path) -> Iterator[int]:
    """The limits of the process's control groups and of all above them, in versions 1 and 2.

    A container may see the path that its group has outside: then the root of its own mount counts.
    """
    lines = _text(root / "proc/self/cgroup").splitlines()
    own = [line.split(":", 2)[1:] for line in lines if line.count(":") > 1]
    for kinds, path in [("", "/"), ("memory", "/"), *own]:
        if kinds and "memory" not in kinds.split(","):
            continue
        mounts, names = V1 if kinds else V2
        relative = PurePosixPath(path.strip("/"))
        for group in (relative, *relative.parents):
            for file in (root / CGROUPS / m / group / name for m in mounts for name in names):
                text = _text(file).strip()
                if text.isdecimal():  # else max
                    yield int(text)


def _of_slurm(environment: Mapping[str, str]) -> Iterator[int]:
    """The limits of a Slurm job, which it may not enforce; 0 stands for all of a node's memory."""
    names = ("MEM_PER_NODE", "MEM_PER_CPU", "CPUS_ON_NODE")
    per_node, per_cpu, cpus = (environment.get(f"SLURM_{name}", "") for name in names)
    if per_node.isdecimal() and int(per_node):
        yield int(per_node) * SLURM_UNIT
    if per_cpu.isdecimal() and cpus.isdecimal() and int(per_cpu) and int(cpus):
        yield int(per_cpu) * int(cpus) * SLURM_UNIT


def _of_process() -> Iterator[int]:
    """The limit of the address space (`ulimit -v`), less what is reserved of it without use."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield max(0, limit - UNUSED - UNUSED_OF_CORE * (os.cpu_count() or 1))


def _text(file: Path) -> str:
    """What a file says; nothing if it is not there or may not be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
