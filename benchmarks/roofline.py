"""What this core can do, and how near the native codelets come to it.

    taskset -c 0 python benchmarks/roofline.py
    taskset -c 0 python benchmarks/roofline.py --smiles CCO --basis 6-31g* --grid-level 1

Peak rates are measured: a float32 matrix product of OpenBLAS for arithmetic, and dot products of
vectors that fill the second-level cache, the shared cache and more than that for reading.  A
kernel's bound is the longer of flops / peak and bytes / rate of the cache that its arrays fit in.

The electron repulsion classes are timed on shell pairs within a fraction of a Bohr, so that
nothing is screened away, and counted per primitive quartet.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pool import SINGLE

os.environ.update(SINGLE)  # before NumPy and JAX are imported: threads are counted then

import jax
import numpy as np
from stages import median_ms, molecule_arguments

from pyscf_ipu import Molecule, Settings, Solver, tables
from pyscf_ipu.codelets import describe, strip_primitives
from pyscf_ipu.exchange_correlation import grid_blocks, xc_density, xc_potential
from pyscf_ipu.hamiltonian import guess_density
from pyscf_ipu.hermite import hermite_powers, n_hermite
from pyscf_ipu.integrals import eri_matrix
from pyscf_ipu.jk import pack_density, repulsion, supermatrix
from pyscf_ipu.pairs import gather_shells
from pyscf_ipu.shape import shape_of
from pyscf_ipu.strips import pair_strips
from pyscf_ipu.tiles import TilePlan, tile_plan
from pyscf_ipu.tiles.plan import primitives_of
from pyscf_ipu.xc import functional

MIB = 2**20
LEVELS = {"second-level cache": 1 * MIB, "shared cache": 24 * MIB, "memory": 768 * MIB}
ROUNDS = 15


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    molecule_arguments(parser)
    default = Path(__file__).parent / "results" / "roofline.json"
    parser.add_argument("--out", type=Path, default=default)
    args = parser.parse_args()
    print(describe())
    peak, rates = peaks()
    print(f"arithmetic {peak:.0f} Gflop/s (float32 matrix product)")
    for level, rate in rates.items():
        print(f"reading    {rate:.1f} GB/s from {level} ({LEVELS[level] / MIB:.0f} MiB)")
    settings = Settings(basis=args.basis, grid_level=args.grid_level, xc="b3lyp5")
    mol = Molecule.from_smiles(args.smiles, seed=0)
    rows = [bound(peak, rates, *kernel) for kernel in kernels(mol, settings)]
    print(f"\n{args.smiles}, {args.basis}\n  {'kernel':14}     ms  Gflop/s    GB/s  of the bound")
    for r in rows:
        print(f"  {r['name']:14} {r['ms']:6.2f} {r['gflops']:8.1f} {r['gbytes']:7.1f}"
              f"  {100 * r['share']:4.0f} % ({r['by']})")  # fmt: skip
    classes = eri_classes(args.basis)
    print("\n  class (bra|ket)   ns per primitive quartet  flops  Gflop/s")
    for c in classes:
        print(f"  {c['name']:16} {c['ns']:15.2f} {c['flops']:15.0f} {c['flops'] / c['ns']:8.1f}")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    report = {"peak_gflops": peak, "read_gbytes": rates, "kernels": rows, "eri_classes": classes}
    args.out.write_text(json.dumps(report, indent=1))
    return 0


def peaks() -> tuple[float, dict[str, float]]:
    """Gflop/s, and GB/s by cache level, of one core."""
    n = 1536
    a, b = np.random.default_rng(0).normal(size=(2, n, n)).astype(np.float32)
    peak = 2e-6 * n**3 / median_ms(lambda: a @ b, ROUNDS)
    rates = {}
    for level, size in LEVELS.items():
        x, y = np.ones((2, size // 8), np.float32)
        repeat = max(1, 256 * MIB // size)

        def read(x: np.ndarray = x, y: np.ndarray = y, repeat: int = repeat) -> None:
            for _ in range(repeat):
                np.dot(x, y)

        read()
        rates[level] = 1e-6 * size * repeat / median_ms(read, 5)
    return peak, rates


def bound(
    peak: float, rates: dict[str, float], name: str, ms: float, flops: float, size: float
) -> dict[str, Any]:
    """Measured time beside the roofline; `size` is what the kernel has to read, in bytes."""
    level = next((k for k in LEVELS if size <= LEVELS[k]), "memory")
    by = {"arithmetic": 1e-6 * flops / peak, level: 1e-6 * size / rates[level]}
    limit = max(by, key=lambda k: by[k])
    return {"name": name, "ms": ms, "gflops": 1e-6 * flops / ms, "gbytes": 1e-6 * size / ms,
            "share": by[limit] / ms, "by": limit}  # fmt: skip


def kernels(mol: Molecule, settings: Settings) -> list[tuple[str, float, float, float]]:
    """(name, ms, flops, bytes) of the kernels that are not the ERIs."""
    dtype, xc = np.float32, functional(settings.xc)
    shape = Solver(settings).shape(mol)
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    table = jax.device_put(tables.shape_tables(shape, settings))
    place = jax.device_put(tables.conformer(mol, shape, settings))
    found = []

    def run(name: str, flops: float, size: float, f: Callable[..., Any], *args: Any) -> Any:
        compiled = jax.jit(f)
        out = jax.block_until_ready(compiled(*args))
        ms = median_ms(lambda: jax.block_until_ready(compiled(*args)), ROUNDS)
        if name:
            found.append((name, ms, flops, size))
        return out

    strips = run("", 0, 0, lambda t, m: pair_strips(plan, t, m, dtype), table, place)
    matrix = run("", 0, 0, lambda s: eri_matrix(plan, s), strips)
    n, pairs, rows = shape.n_ao, shape.n_pairs, plan.n_rows
    # Three look-ups and two fused operations for each element of the half; M is read, L written.
    g = run("supermatrix", 2 * pairs**2, 4 * rows**2 + 2 * pairs**2,
            lambda m: supermatrix(plan, m, xc.exact_exchange), matrix)  # fmt: skip
    shells = gather_shells(plan.layout, table, place, dtype)
    grid = run("", 0, 0, lambda t, s, m: grid_blocks(plan.layout, xc, t, s, m, dtype),
               table, shells, place)  # fmt: skip
    d = guess_density(plan.layout, table, place)
    points, planes = grid.weights.size, grid.ao.shape[1]
    flops, size = 2.0 * n * points * (n + planes), 4.0 * grid.ao.size
    moments = run("xc_density", flops, size, xc_density, grid.ao, d)
    run("xc_potential", flops, size, xc_potential, grid.ao, moments)
    run("repulsion", 2 * pairs**2, 2 * pairs**2, lambda g, d: repulsion(g, pack_density(d)), g, d)
    return found


def eri_classes(basis: str) -> list[dict[str, Any]]:
    """ns per primitive quartet of every pair of shell-pair classes, and the flops counted."""
    rng = np.random.default_rng(0)
    numbers = [6] * 12 + [1] * 12
    settings = Settings(basis=basis)
    mol = Molecule(numbers, 0.05 * rng.normal(size=(len(numbers), 3)))
    shape = shape_of(mol.numbers, basis, False, 0, pad=False)
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    arrays = tables.shape_tables(shape, settings), tables.conformer(mol, shape, settings)
    strips = jax.jit(lambda t, m: pair_strips(plan, t, m, np.float32))(*arrays)

    def seconds(blocks: tuple) -> float:
        part: TilePlan = dataclasses.replace(plan, blocks=blocks)
        run = jax.jit(lambda s: eri_matrix(part, s))
        jax.block_until_ready(run(strips))
        return 1e-3 * median_ms(lambda: jax.block_until_ready(run(strips)), ROUNDS)

    # An empty work list still sorts the primitives and clears the matrix.
    first = plan.blocks[0]
    nothing = dataclasses.replace(
        first, bra_strip=first.bra_strip[:0], ket_strip=first.ket_strip[:0]
    )
    overhead = seconds((nothing,))
    found = []
    for block in plan.blocks:
        bra, ket = plan.strips[block.bra], plan.strips[block.ket]
        n = [_primitives(plan, s) for s in (bra, ket)]
        quartets = n[0] * (n[1] + 1) / 2 if block.bra == block.ket else n[0] * n[1]
        spent = seconds((block,)) - overhead
        found.append(
            {
                "name": f"{_name(bra)}|{_name(ket)}",
                "quartets": quartets,
                "ns": 1e9 * spent / quartets,
                "flops": flops_of(
                    bra.pair_class, ket.pair_class, _primitives(plan, bra) / len(bra.pair_strip)
                ),
            }
        )
    return found


def _primitives(plan: TilePlan, strips: Any) -> int:
    """Primitive pairs of a class."""
    members = strips.pair_class.members
    return sum(primitives_of(plan.layout, m) * len(m.first) for m in members)


def _name(strips: Any) -> str:
    sides = strips.pair_class.ls_a, strips.pair_class.ls_b
    return " ".join("".join("spd"[l] for l in ls) for ls in sides)


def flops_of(bra: Any, ket: Any, depth: float) -> float:
    """Operations of one primitive quartet as eri.hpp does them; a fused one counts twice."""
    order = bra.order + ket.order
    terms = 20 + 2 * order
    series = 2 * terms if order <= 1 else 3 * terms
    top = 12 + (order and order + 24 + 4 * order)  # map and root; powers, exponential, recursion
    distance = 9 + 5 + 8  # P - Q in two words, its square, alpha with a reciprocal root
    recursion = sum(3 * (n_hermite(n) - 1) for n in range(1, order + 1)) + 2 * (order + 1)
    bra_part = 2 * _occupied(bra) * n_hermite(ket.order)
    ket_part = 2 * _occupied(ket) * _products(bra) / depth  # once for all primitives of the bra
    return series + top + distance + recursion + bra_part + ket_part


def _products(pair_class: Any) -> int:
    return sum(2 * l + 1 for l in pair_class.ls_a) * sum(2 * l + 1 for l in pair_class.ls_b)


def _occupied(pair_class: Any) -> int:
    """(AO product, Hermite) pairs that are not zero by symmetry; d functions as cartesian xy."""
    found = 0
    shells = [[p for l in ls for p in _powers(l)] for ls in (pair_class.ls_a, pair_class.ls_b)]
    for a in shells[0]:
        for b in shells[1]:
            most = np.add(a, b)
            found += sum(
                bool(np.all(np.array(h) <= most)) for h in hermite_powers(pair_class.order)
            )
    return found


def _powers(l: int) -> list[tuple[int, int, int]]:
    return [h for h in hermite_powers(l) if sum(h) == l][: 2 * l + 1]


if __name__ == "__main__":
    sys.exit(main())
