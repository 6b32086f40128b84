"""A Profile as large and as crooked as a real one, for the tests of its presentation.

The program is an SCF: a start, a loop of iterations around a loop of sweeps around a loop of
rounds, and an end.  All numbers are invented.
"""

from dataclasses import replace

import numpy as np

from pyscf_ipu.ipu.profile.data import Cycles, Repeat, Step
from pyscf_ipu.ipu.profile.regions import Buffer, Memory
from pyscf_ipu.ipu.report.profile import Profile

TILES = 1472
LIMIT = 624 * 1024
OVERFLOWING_TILE = 1471
HOSTILE_NAME = '</script><b>&amp; "quoted" ünïcode'


def compute(name, stage, low, high, vertices=TILES, balance=0.9, how="formula"):
    return Step(
        kind="compute", name=name, stage=stage, cycles=Cycles(float(low), float(high)),
        tiles=min(vertices, TILES), vertices=vertices, balance=balance, how=how,
        source="PopLibs, popops/ExprOpUtil.cpp",
    )  # fmt: skip


def exchange(name, stage, cycles, moved):
    cost = Cycles(float(cycles), float(cycles))
    return Step("exchange", name, stage, cost, TILES, moved_bytes=float(moved))


def sync(stage):
    return Step("sync", "sync", stage, Cycles(126.0, 126.0), TILES, how="measured")


def host(name, stage, moved):
    return Step("host", name, stage, Cycles(0.0, 0.0), 1, moved_bytes=float(moved), how="vendor")


def bulk_step(name, stage, low, high, moved=4e4, **options):
    """Exchange, sync, compute: one step of bulk synchronous parallel execution."""
    return (
        exchange(f"{name}/in", stage, moved / 40, moved),
        sync(stage),
        compute(name, stage, low, high, **options),
    )


def scf_program(iterations=20, sweeps=8, rounds=23):
    rotations = Repeat(
        rounds,
        (
            *bulk_step("jacobi_angles", "eigensolver", 310, 1240, how="counted", balance=0.5),
            *bulk_step("jacobi_rows", "eigensolver", 1550, 6200, how="counted", balance=0.46),
        ),
        "round",
    )
    many = {"vertices": 6 * TILES, "how": "counted"}
    eri = (
        bulk_step("eri_s_s", "eri", 9e3, 4e4, balance=0.97, **many),
        bulk_step("eri_s_sp", "eri", 6e4, 2.4e5, balance=0.9, **many),
        bulk_step("eri_sp_sp", "eri", 2.4e5, 9.6e5, balance=0.8, **many),
    )
    iteration = (
        *(step for part in eri for step in part),
        *bulk_step("supermatrix_jk", "supermatrix", 21_000, 60_000, moved=3e6),
        *bulk_step("density_on_grid", "xc", 52_000, 120_000, how="formula"),
        *bulk_step("b3lyp", "xc", 18_000, 90_000, how="counted"),
        Repeat(sweeps, (rotations, sync("eigensolver")), "sweep"),
        *bulk_step("diis", "diis", 9_000, 20_000, how="estimated", vertices=40, balance=0.1),
        compute(HOSTILE_NAME, "", 700, 900),
    )
    start = (
        host("molecule", "pairs", 2e5),
        *bulk_step("pairs", "pairs", 30_000, 90_000),
        *bulk_step("one_electron", "one_electron", 150_000, 600_000, how="counted", balance=0.6),
        *bulk_step("becke", "grid", 400_000, 1_200_000, how="counted"),
    )
    end = (*bulk_step("repulsion", "repulsion", 900, 900), host("energy", "", 64))
    return (*start, Repeat(iterations, iteration, "scf"), *end)


def scf_memory():
    tile = np.arange(TILES)
    categories = {
        "variables": 260_000 + 60_000 * ((tile * 37 % 101) / 101),
        "vertex code": np.where(tile < 1300, 52_000, 8_000),
        "exchange code": 30_000 + 10 * tile,
        "vertex instances": np.where(tile % 7 == 0, 12_000, 4_000),
        "stack": np.full(TILES, 3_000),
    }
    by_category = {k: np.asarray(v, dtype=np.int64) for k, v in categories.items()}
    by_category["variables"][OVERFLOWING_TILE] = 640_000
    timeline = tuple(
        (f"step {k}", int(300_000 + 200_000 * np.sin(k / 9) ** 2 + (190_000 if k == 70 else 0)))
        for k in range(120)
    )
    largest = (
        Buffer("two-electron integrals", "eri", "variables", 400_000, 588_800_000),
        Buffer("density replicated to every tile with quartets", "xc", "variables", 90_000, 5_000),
        Buffer("eri_sp_sp", "eri", "vertex code", 52_000, 52_000 * TILES),
    )  # fmt: skip
    return Memory(LIMIT, by_category, by_category["stack"], timeline, largest)


def scf_profile(**changes):
    generator = np.random.default_rng(7)
    profile = Profile(
        target="gc200",
        num_ipus=1,
        n_tiles=TILES,
        clock_hz=1.33e9,
        program=scf_program(),
        memory=scf_memory(),
        tile_compute=np.where(np.arange(TILES) < 1440, 8e6 + 6e6 * generator.random(TILES), 0.0),
        host_seconds=(1e-4, 2e-4, 9e-4),
        unknown_ops={"sort": 20, "cumsum": 1},
        notes=(
            "Energies of this sample are invented; so are its cycles, which only have to be "
            "as many and as different as those of a program that is worth looking at.",
            "The exchange is fitted.",
        ),
        energy_hartree=-76.026789,
    )
    return replace(profile, **changes)


def bow_profile():
    """The same program on a faster clock, with half the integrals' cycles and a stage less."""

    def changed(node):
        if isinstance(node, Repeat):
            return replace(node, body=tuple(changed(x) for x in node.body if kept(x)))
        return replace(node, cycles=node.cycles * (0.5 if node.stage == "eri" else 1.0))

    def kept(node):
        return isinstance(node, Repeat) or node.stage != "diis"

    program = tuple(changed(x) for x in scf_program())
    return scf_profile(target="bow", clock_hz=1.85e9, program=program, unknown_ops={})
