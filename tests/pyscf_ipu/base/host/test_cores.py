"""Cores that a process may use: its affinity, and what a container allows."""

import math
import os

import pytest

from pyscf_ipu.base.host import cores


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, math.inf),
        ({"cpu.max": "max 100000\n"}, math.inf),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, math.inf),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
    ],
)
def test_what_a_container_allows(tmp_path, monkeypatch, files, limit):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(cores, "CGROUP", tmp_path)
    affinity = len(os.sched_getaffinity(0))
    assert cores.n_cores() == (affinity if math.isinf(limit) else min(affinity, math.ceil(limit)))


def test_the_affinity_counts(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7}, raising=False)
    assert cores.n_cores() <= 3
