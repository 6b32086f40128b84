"""Memory that a process may use: what a container and a batch job allow."""

import os
import resource

import pytest

from pyscf_ipu.base.host import memory_limit
from pyscf_ipu.base.host.memory_limit import available_bytes, free_bytes, return_memory

GIB = 2**30
PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
OURS = "proc/self/cgroup"
V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"
UNLIMITED = "9223372036854771712\n"


@pytest.fixture(autouse=True)
def no_limit_of_addresses(monkeypatch):
    """Whatever shell runs the tests."""
    limited(monkeypatch, resource.RLIM_INFINITY)


def limited(monkeypatch, addresses):
    monkeypatch.setattr(memory_limit.resource, "getrlimit", lambda _: (addresses, addresses))


def limit_of(root, files, environment=None, read=available_bytes):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read(root, environment or {})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, PHYSICAL),
        ({f"{V2}/memory.max": "max\n"}, PHYSICAL),
        ({f"{V2}/memory.max": f"{GIB}\n"}, GIB),
        ({OURS: "0::/job/step\n", f"{V2}/job/step/memory.max": f"{GIB}\n"}, GIB),
        (
            {
                OURS: "0::/job/step\n",
                f"{V2}/job/memory.max": f"{GIB}\n",
                f"{V2}/job/step/memory.max": "max\n",
            },
            GIB,
        ),
        ({f"{V1}/memory.limit_in_bytes": f"{GIB}\n"}, GIB),
        ({f"{V1}/memory.limit_in_bytes": UNLIMITED}, PHYSICAL),
        (
            {
                OURS: "5:cpu:/a\n4:hugetlb,memory:/slurm/uid_1/job_2\n0::/\n",
                f"{V1}/slurm/uid_1/job_2/memory.limit_in_bytes": UNLIMITED,
                f"{V1}/slurm/uid_1/memory.limit_in_bytes": f"{GIB}\n",
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1\n",
            },
            GIB,
        ),
        # A container that sees its path of outside.
        ({OURS: "4:memory:/docker/1f\n", f"{V1}/memory.limit_in_bytes": f"{GIB}\n"}, GIB),
        # One with a namespace of its own: it is at the root, and others are outside.
        ({OURS: "0::/\n", f"{V2}/memory.max": f"{GIB}\n"}, GIB),
        ({OURS: "0::/../other\n", f"{V2}/memory.max": f"{GIB}\n"}, GIB),
        # Version 2 beside version 1, where either may have the limit.
        ({OURS: "0::/user/7\n", f"{V2}/unified/user/7/memory.max": f"{GIB}\n"}, GIB),
        (
            {
                OURS: "4:memory:/user\n0::/user/7\n",
                f"{V1}/user/memory.limit_in_bytes": f"{GIB}\n",
                f"{V2}/unified/user/7/memory.max": "max\n",
            },
            GIB,
        ),
        # Where a group is slowed down before it meets its limit.
        (
            {
                OURS: "0::/job\n",
                f"{V2}/job/memory.high": f"{GIB}\n",
                f"{V2}/job/memory.max": f"{2 * GIB}\n",
            },
            GIB,
        ),
        # A group that is gone: those above it count.
        ({OURS: "0::/job/step (deleted)\n", f"{V2}/job/memory.max": f"{GIB}\n"}, GIB),
        ({OURS: "nonsense\n", f"{V2}/memory.max": "\n"}, PHYSICAL),
    ],
)
def test_the_lowest_limit_of_all_control_groups_counts(files, expected, tmp_path):
    assert limit_of(tmp_path, files) == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SLURM_MEM_PER_NODE": "1024"}, GIB),
        ({"SLURM_MEM_PER_NODE": "0"}, PHYSICAL),
        ({"SLURM_MEM_PER_CPU": "512", "SLURM_CPUS_ON_NODE": "2"}, GIB),
        ({"SLURM_MEM_PER_CPU": "512"}, PHYSICAL),
        ({"SLURM_MEM_PER_NODE": "much"}, PHYSICAL),
    ],
)
def test_a_job_of_slurm_has_a_limit(environment, expected, tmp_path):
    assert limit_of(tmp_path, {}, environment) == expected


def test_a_file_that_may_not_be_read_says_nothing(tmp_path):
    (tmp_path / V2 / "memory.max").mkdir(parents=True)  # reading fails, even for root
    assert available_bytes(tmp_path, {}) == PHYSICAL


def test_a_limit_of_addresses_counts_less_what_is_only_reserved(tmp_path, monkeypatch):
    reserved = memory_limit.UNUSED + memory_limit.UNUSED_OF_CORE * os.cpu_count()
    limited(monkeypatch, GIB + reserved)
    assert available_bytes(tmp_path, {}) == GIB
    limited(monkeypatch, GIB // 4)  # below what this process uses already
    assert available_bytes(tmp_path, {}) == 0


@pytest.mark.parametrize(
    ("meminfo", "expected"),
    [
        ("MemTotal: 9 kB\nMemFree: 7 kB\nMemAvailable:  1024 kB\n", 2**20),
        (f"MemAvailable: {4 * GIB // 1024} kB\n", GIB),  # of the host of a container
        ("MemTotal: 9 kB\n", GIB),
        ("MemAvailable:", GIB),
    ],
)
def test_what_is_free_is_at_most_the_limit(meminfo, expected, tmp_path):
    files = {"proc/meminfo": meminfo, f"{V2}/memory.max": f"{GIB}\n"}
    assert limit_of(tmp_path, files, read=free_bytes) == expected
    assert limit_of(tmp_path, files) == GIB  # whatever else runs


def test_memory_is_given_back_where_the_c_library_can(monkeypatch):
    return_memory()
    monkeypatch.setattr(memory_limit.ctypes, "CDLL", lambda _: object())
    return_memory()
