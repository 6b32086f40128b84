"""How many cores this process may use."""

import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def n_cores() -> int:
    """Cores of the process's affinity, or fewer if its container may not use all their time."""
    if hasattr(os, "sched_getaffinity"):
        there = len(os.sched_getaffinity(0))
    else:
        there = os.cpu_count() or 1
    return max(1, math.ceil(min(there, _quota(CGROUP))))


def _quota(cgroup: Path) -> float:
    """Cores' worth of time that a container may use, from version 2 of cgroups, or version 1."""
    texts = [
        cgroup / "cpu.max",
        cgroup / "cpu" / "cpu.cfs_quota_us",
        cgroup / "cpu" / "cpu.cfs_period_us",
    ]
    words = " ".join(path.read_text() for path in texts if path.exists()).split()
    if len(words) != 2 or not words[0].isdecimal():  # "max", or -1: no limit
        return math.inf
    return int(words[0]) / int(words[1])
