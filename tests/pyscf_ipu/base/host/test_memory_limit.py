"""Memory that a process may use: what a container and a batch job allow."""

import os

import pytest

from pyscf_ipu.base.host.memory_limit import available_bytes

GIB = 2**30
PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
OURS = "proc/self/cgroup"
V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"
UNLIMITED = "9223372036854771712\n"


def limit_of(root, files, environment=None):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return available_bytes(root, environment or {})


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
