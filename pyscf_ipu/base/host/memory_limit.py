"""How much memory this process may use: the machine's, its container's or its batch job's."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

CGROUPS = "sys/fs/cgroup"
SLURM_UNIT = 2**20


def available_bytes(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> int:
    """Memory of this machine, or the lowest limit that this process is under.

    Args:
        root: of the file system that says the limits.
        environment: says those of Slurm.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_of_cgroups(root), *_of_slurm(environment)])


def _of_cgroups(root: Path) -> Iterator[int]:
    """The limits of the process's control groups and of all above them, in versions 1 and 2.

    A container may see the path that its group has outside: then the root of its own mount counts.
    """
    groups = root / "proc/self/cgroup"
    lines = groups.read_text().splitlines() if groups.exists() else []
    own = [line.split(":", 2)[1:] for line in lines if line.count(":") > 1]
    for kinds, path in [("", "/"), ("memory", "/"), *own]:
        if kinds and "memory" not in kinds.split(","):
            continue
        mount, name = ("memory", "memory.limit_in_bytes") if kinds else (".", "memory.max")
        relative = PurePosixPath(path.strip("/"))
        for group in (relative, *relative.parents):
            file = root / CGROUPS / mount / group / name
            text = file.read_text().strip() if file.exists() else ""
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
