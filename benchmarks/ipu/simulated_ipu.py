"""What the simulated IPU says.

validation  its model beside published measurements
pentane     C5H12, STO-3G, B3LYP, grid level 0, 20 SCF cycles on one Bow, beside the 77.7 million
            device cycles that PySCF-IPU reported (figures notebook of its history)
capacity    the longest alkane that fits on 1, 4 and 16 Bow IPUs
overhead    time of a simulated SCF of 54 AOs over that of the plain one, both compiled
"""

import dataclasses
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import harness
from benchmarks.ipu.capacity import streamed_share
from benchmarks.ipu.validation import validation_table
from pyscf_ipu import Molecule, Settings, rks_core
from pyscf_ipu.ipu import BOW, Profile, machine_of, memory_of, simulate
from pyscf_ipu.ipu.engine.command import profile_rks
from pyscf_ipu.ipu.profile.data import NOTHING, Cycles, Repeat
from pyscf_ipu.ipu.profile.regions import Memory
from pyscf_ipu.shapes.shape import Shape, shape_of

Figures = tuple[Any, list[str]]
"""Figures of a part, and the bounds that it missed (none, for there are no bounds)."""

REFERENCE_CYCLES = 77.7e6
CYCLES = 20
TARGET_MS = 10.0
HALF = 0.5  # of G in streaming memory, at most
PENTANE = "CCCCC"
FIFTY_AOS = "CC(C)C1CC(O)C1"  # 8 heavy atoms, 14 hydrogens: 54 AOs


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parts = {f.__name__: f for f in (validation, pentane, capacity, overhead)}
    parser.add_argument("--parts", nargs="*", default=list(parts), choices=list(parts))
    args = parser.parse_args()
    return harness.run_parts(parts, args.parts, args.out)


def validation() -> Figures:
    """The table of published measurements."""
    rows = []
    for c in validation_table():
        numbers = f"{c.measured:12.6g} {c.modelled:12.6g} {c.unit:10}"
        print(f"  {c.kind:12} {c.id:4} {c.what:52} {numbers} {c.difference_percent:+6.2f} %")
        rows.append({"id": c.id, "kind": c.kind, "difference_percent": c.difference_percent})
    return rows, []


def pentane() -> Figures:
    """Our design, scaled to 20 cycles, beside a sketch of PySCF-IPU's."""
    profile = profile_rks(
        Molecule.from_smiles(PENTANE, seed=0), Settings(xc="b3lyp", grid_level=0), "bow"
    )
    once, cycle = split(profile)
    print("  ours: cycles of a conformer, by stage")
    found: dict[str, Cycles] = {}
    for name in dict.fromkeys((*once, *cycle)):
        before, each = once.get(name, NOTHING), cycle.get(name, NOTHING)
        found[name] = before + each * CYCLES
        print(
            f"    {name:14} {before.low:12,.0f} once + {CYCLES} x {each.low:10,.0f} = "
            f"{found[name].low:12,.0f} to {found[name].high:12,.0f}"
        )
    total = sum(found.values(), NOTHING)
    ms = total * (1e3 / profile.clock_hz)
    print(
        f"    {'total':14} {total.low:,.0f} to {total.high:,.0f} cycles = {ms.low:.2f} to "
        f"{ms.high:.2f} ms (aim: {TARGET_MS:.0f})"
    )
    for stage in ("eri", "xc"):
        steps = [s for s, _ in profile.steps() if s.kind == "compute" and s.stage == stage]
        step = max(steps, key=lambda s: s.cycles.low * s.balance)
        print(f"    balance of {step.name}: {100 * step.balance:.0f} %")
    sketch = reference_sketch(37, 10_000)
    print("  a sketch of PySCF-IPU's design, low cycles for 20 SCF cycles")
    for name, cycles in (sketch | {"reported": REFERENCE_CYCLES}).items():
        print(f"    {name:58} {cycles:12,.0f}")
    stages = {name: [cycles.low, cycles.high] for name, cycles in found.items()}
    return {"stages": stages, "ms": [ms.low, ms.high], "sketch": sketch}, []


def split(profile: Profile) -> tuple[dict[str, Cycles], dict[str, Cycles]]:
    """Cycles by stage: outside the SCF loop, and of one of its turns."""

    def part(nodes: Any) -> Profile:
        return dataclasses.replace(profile, program=tuple(nodes))

    loops = [x for x in profile.program if isinstance(x, Repeat)]
    (scf,) = [x for x in loops if any(s.stage == "xc" for s, _ in part([x]).steps())]
    rest = [x for x in profile.program if x is not scf]
    return part(rest).total_by("stage"), part(scf.body).total_by("stage")


def reference_sketch(n: int, points: int) -> dict[str, float]:
    """PySCF-IPU's own choices, priced by the same rules where they are known.

    A cold Jacobi eigensolver of 12 sweeps each cycle; XC as matrix products of ordinary arrays;
    J and K from integrals in tile memory, an N x N accumulator for each of 6 x 1471 vertices.  The
    integrals are libcint's C code: its comments speak of 1.6 million cycles for their two halves,
    for a molecule that they do not name.  Whether they are computed once or in every cycle changes
    the total more than anything else.
    """
    dtype = np.float32
    ao, d = np.ones((4, n, points), dtype), np.ones((n, n), dtype)
    w = np.ones(points, dtype)

    def xc(ao: Any, d: Any, w: Any) -> Any:
        t = d @ ao[0]
        rho = jnp.stack([jnp.sum(ao[i] * t, axis=0) for i in range(4)])
        v = w * jnp.cbrt(rho[0]) + jnp.sum(rho[1:] ** 2, axis=0)
        return (ao[0] * v) @ ao[0].T + (ao[1] * v) @ ao[0].T

    vertices = 6 * 1471
    accumulate = np.zeros((vertices, n, n), dtype)
    each = {
        "eigh: 12 cold Jacobi sweeps": _low(jnp.linalg.eigh, d),
        "XC: density, functional, matrix": _low(xc, ao, d, w),
        "J and K: sum of the vertices' N x N accumulators": _low(lambda x: x.sum(0), accumulate),
        "DIIS and other N x N products": _low(lambda d: d @ d @ d + d @ d, d),
    }
    total = {f"{name}, each cycle": CYCLES * c for name, c in each.items()}
    known = sum(total.values())
    return total | {
        "integrals, if computed once (1.6 M, from code comments)": 1.6e6,
        "sum": known + 1.6e6,
        "sum, if the integrals are computed in each cycle": known + CYCLES * 1.6e6,
    }


def _low(fn: Any, *args: Any) -> float:
    return simulate(jax.jit(fn), BOW)(*args)[1].cycles.low


def capacity() -> Figures:
    """The longest alkane on 1, 4 and 16 IPUs, all of G on the tiles or a part in DRAM."""
    found = {}
    for basis, measured in (("sto-3g", PENTANE), ("6-31g*", "CC")):
        mol = Molecule.from_smiles(measured, seed=0)
        core, args = rks_core(
            mol, Settings(basis=basis, grid_level=0), lambda shape: machine_of(BOW, 1, shape)
        )
        memory = memory_of(core, BOW, 1, *args)
        code, can_run = int(memory.code.max()), memory.executable_bytes or 0
        print(
            f"  {basis}: {measured}'s code, stack and constants take "
            f"{memory.always_live.max() / 1024:.0f} KiB of the fullest tile, its code "
            f"{code / 1024:.0f} of {can_run / 1024:.0f} KiB that can run"
        )
        if code > can_run:
            found[basis] = {"code_bytes": code, "can_run": can_run}
            continue
        for ipus in (1, 4, 16):
            shares: list[float] = []
            while (x := _share(len(shares) + 1, basis, ipus, memory)) is not None and x <= HALF:
                shares.append(x)
            lengths = sum(x == 0.0 for x in shares), len(shares)
            past = next((n for n, _ in enumerate(shares, 1) if alkane(n, basis).n_ao >= 250), None)
            row = [(n, alkane(n, basis).n_ao) for n in lengths]
            found[f"{basis} on {ipus}"] = {"on_tiles": row[0], "streamed": row[1]}
            off = shares[-1] * _g_bytes(lengths[1], basis)
            seconds = off / (max(1, ipus // 4) * float(BOW.streaming_bytes_per_second))
            print(
                f"  {basis:7} {ipus:2} x Bow: C{row[0][0]}, {row[0][1]} AOs with all of G on the "
                f"tiles; C{row[1][0]}, {row[1][1]} AOs with {100 * shares[-1]:.0f} % of it in "
                f"DRAM, {1e3 * seconds:.0f} ms a cycle to load"
                + (f"; C{past}: {100 * shares[past - 1]:.0f} %" if past else "")
            )
    return found, []


def _share(carbons: int, basis: str, ipus: int, memory: Memory) -> float | None:
    return streamed_share(alkane(carbons, basis), BOW, ipus, memory)


def _g_bytes(carbons: int, basis: str) -> float:
    pairs = alkane(carbons, basis).n_pairs
    return 2.0 * pairs * (pairs + 1)


def alkane(n: int, basis: str) -> Shape:
    return shape_of(np.array([6] * n + [1] * (2 * n + 2)), basis, False, 0, pad=False)


def overhead() -> Figures:
    """Simulated over plain, once both are compiled."""
    mol = Molecule.from_smiles(FIFTY_AOS, seed=0)
    core, args = rks_core(mol, Settings(grid_level=0), lambda shape: machine_of(BOW, 1, shape))
    run, plain = simulate(core, BOW), jax.jit(core)
    first, _ = harness.timed(lambda: jax.block_until_ready(run(*args)[0]))
    jax.block_until_ready(plain(*args))
    times = [
        1e3 * harness.median_seconds(lambda f=f: jax.block_until_ready(f(*args)), 5)
        for f in (plain, lambda *x: run(*x)[0])
    ]
    print(
        f"  plain {times[0]:.0f} ms, simulated {times[1]:.0f} ms: {times[1] / times[0]:.1f} times; "
        f"the first call took {first:.0f} s"
    )
    return {"plain_ms": times[0], "simulated_ms": times[1], "first_seconds": first}, []


if __name__ == "__main__":
    sys.exit(main())
