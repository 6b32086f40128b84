"""What this core can do, and how near the native codelets come to it.

Peak rates are measured: a float32 matrix product of OpenBLAS for arithmetic; for reading, dot
products of vectors that fill the second-level cache, the shared cache, and more than that.  A
kernel's bound is the longer of flops / peak and bytes / rate of the cache that its arrays fit in.

The electron repulsion classes are timed on shell pairs within a fraction of a Bohr, so that nothing
is screened away, and counted per primitive quartet.  Pin the process: taskset -c 0.

`--preset spice` has the kernels of a published level instead, with density fitting: XC in pieces of
the grid, as the program has them, a twelfth of these; J and K in the matrices' precision.
"""

import dataclasses
import itertools
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import harness
from benchmarks.engine.stages import ROUNDS, Stages, molecule_parser
from pyscf_ipu import Molecule, Settings
from pyscf_ipu.codelets import describe, strip_primitives
from pyscf_ipu.grid.blocks import grid_blocks
from pyscf_ipu.grid.orbital_products import ORBITALS
from pyscf_ipu.grid.xc_matrix import PORTABLE, exchange_correlation, xc_density, xc_potential
from pyscf_ipu.integrals import eri_matrix
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.integrals.supermatrix import pack_density, pair_order, repulsion
from pyscf_ipu.kohn_sham.hamiltonian import guess_density
from pyscf_ipu.numerics.columns import columns_of_density
from pyscf_ipu.numerics.hermite import hermite_powers, n_hermite
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import TilePlan, primitives_of, tile_plan

MIB = 2**20
Kernel = tuple[str, float, float, float]
"""Name, ms, flops, bytes."""
LEVELS = {"second-level cache": 1 * MIB, "shared cache": 24 * MIB, "memory": 768 * MIB}


def main() -> int:
    parser = molecule_parser(__doc__, __file__)
    parser.add_argument("--preset", help="a published level in place of basis and grid")
    args = parser.parse_args()
    print(describe())
    peak, rates = peaks()
    print(f"arithmetic {peak:.0f} Gflop/s (float32 matrix product)")
    for level, rate in rates.items():
        print(f"reading    {rate:.1f} GB/s from {level} ({LEVELS[level] / MIB:.0f} MiB)")
    mol = Molecule.from_smiles(args.smiles, seed=0)
    if args.preset:
        level = dataclasses.replace(Settings.preset(args.preset), jk="ri")
        with level.numerics.scope():
            found = of_level(mol, level)
        rows = [bound(peak / slower, rates, *kernel) for slower, kernel in found]
        print(f"\n{args.smiles}, {args.preset}; share: of the bound")
        harness.table(rows)
        return harness.finish(args.out, {"peak_gflops": peak, "kernels": rows})
    settings = Settings(basis=args.basis, grid_level=args.grid_level, xc="b3lyp5")
    rows = [bound(peak, rates, *kernel) for kernel in kernels(mol, settings)]
    print(f"\n{args.smiles}, {args.basis}; share: of the bound")
    harness.table(rows)
    classes = eri_classes(args.basis)
    print("\nclasses (bra|ket): ns and flops of a primitive quartet")
    harness.table(classes)
    report = {"peak_gflops": peak, "read_gbytes": rates, "kernels": rows, "eri_classes": classes}
    return harness.finish(args.out, report)


def peaks() -> tuple[float, dict[str, float]]:
    """Gflop/s, and GB/s by cache level, of one core."""
    n = 1536
    a, b = np.random.default_rng(0).normal(size=(2, n, n)).astype(np.float32)
    peak = 2e-9 * n**3 / harness.processor_seconds(lambda: a @ b, ROUNDS)
    rates = {}
    for level, size in LEVELS.items():
        x, y = np.ones((2, size // 8), np.float32)
        repeat = max(1, 256 * MIB // size)

        def read(x: np.ndarray = x, y: np.ndarray = y, repeat: int = repeat) -> None:
            for _ in range(repeat):
                np.dot(x, y)

        read()
        rates[level] = 1e-9 * size * repeat / harness.processor_seconds(read, 5)
    return peak, rates


def bound(
    peak: float, rates: dict[str, float], name: str, ms: float, flops: float, size: float
) -> dict[str, Any]:
    """Measured time beside the roofline; `size` is what the kernel has to read, in bytes."""
    level = next((k for k in LEVELS if size <= LEVELS[k]), "memory")
    by = {"arithmetic": 1e-6 * flops / peak, level: 1e-6 * size / rates[level]}
    limit = max(by, key=lambda k: by[k])
    gflops, gbytes, share = 1e-6 * flops / ms, 1e-6 * size / ms, by[limit] / ms
    return {"name": name, "ms": ms, "gflops": gflops, "gbytes": gbytes, "share": share, "by": limit}


def kernels(mol: Molecule, settings: Settings) -> list[Kernel]:
    """The kernels that are not the ERIs."""
    timed = Stages(mol, settings)
    g, grid, d = timed.hamiltonian()
    moments = timed.run("xc_density", xc_density, grid.ao, d)
    timed.run("xc_potential", xc_potential, grid.ao, moments)
    timed.run("XC as a whole", lambda g, d: exchange_correlation(timed.xc, g, d, PORTABLE), grid, d)
    order = pair_order(timed.plan)
    timed.run("repulsion", lambda g, d: repulsion(g, pack_density(d), order), g, d)
    pairs, planes = timed.shape.n_pairs, grid.ao.values.shape[1]
    live = np.asarray(grid.ao.listed().count, float)  # AOs that count on a block
    points = grid.weights.shape[1]
    print(
        f"{timed.shape.n_ao} AOs; on a block {live.mean():.1f}, root mean square "
        f"{np.sqrt((live**2).mean()):.1f}"
    )
    flops = 2.0 * points * (live**2 + planes * live).sum()
    size = 4.0 * points * planes * live.sum()
    work = {
        "xc_density": (flops, size),
        "xc_potential": (flops, size),
        # Two products, which read all values; the functional's own operations are not counted.
        "XC as a whole": (2 * flops, 2 * size),
        "repulsion": (2.0 * pairs**2, 2.0 * pairs**2),
    }
    return [(name, timed.ms[name], flops, size) for name, (flops, size) in work.items()]


def of_level(mol: Molecule, level: Settings) -> list[tuple[float, Kernel]]:
    """Kernels of a cycle, each behind how much slower its numbers are than float32."""
    timed = Stages(mol, level, rounds=3)
    gathered = jax.jit(lambda t, c, dtype: gather_atoms(timed.plan, t, c, dtype), static_argnums=2)
    atoms = gathered(timed.table, timed.place, np.dtype(timed.dtype))
    grid = jax.jit(lambda a: grid_blocks(a, timed.xc))(atoms)
    every = 12
    some = grid._replace(**{k: getattr(grid, k)[::every] for k in ("local", "owner", "pieces")})
    share = len(grid.pieces) / len(some.pieces)
    d = guess_density(atoms)
    columns = columns_of_density(d)
    columns = columns._replace(count=jnp.minimum(columns.count, timed.place.n_occupied))
    tau, nothing = timed.xc.needs_tau, jnp.zeros(())

    def values(ao: Any, weights: Any) -> Any:
        del weights
        return ao.listed().count, nothing

    def moments(ao: Any, weights: Any) -> Any:
        del weights
        return ORBITALS.moments(ao, columns, tau), nothing

    def matrix(ao: Any, weights: Any) -> Any:
        factors = ORBITALS.moments(ao, columns, tau)
        return weights, ORBITALS.matrix(ao, factors, np.float64)

    live, _ = timed.run("AO values", lambda g: g.each(values), some)
    timed.run("moments", lambda g: g.each(moments), some)
    timed.run("matrix", lambda g: g.each(matrix), some)
    alone, both, all_of_it = (share * timed.ms[k] for k in ("AO values", "moments", "matrix"))
    live, points = np.asarray(live, float), some.pieces.shape[-1]
    print(
        f"{timed.shape.n_ao} AOs, {timed.shape.n_grid} points; on 64 points {live.mean():.0f} AOs, "
        f"root mean square {np.sqrt((live**2).mean()):.0f}"
    )
    occupied, size = int(columns.count), 16.0 * points * share * live.sum()
    psi = 2.0 * points * share * 4 * occupied * live.sum()
    square = 2.0 * points * share * (live**2).sum() * (2.5 if tau else 1.0)
    timed.dtype = level.numerics_of(has_float64=True).matrix_dtype
    wide = gathered(timed.table, timed.place, np.dtype(np.float64))
    g = timed.fit(wide)
    timed.repulsion(g, guess_density(wide).astype(timed.dtype))
    products = g[0]
    word, part = np.dtype(timed.dtype).itemsize, float(jnp.mean(products.present))
    n, functions = timed.shape.n_ao, products.b.shape[0]
    exchange = functions * n**2 * occupied * (2.0 * part + 1.0)
    return [
        (1.0, ("AO values", alone, 0.0, size)),
        (1.0, ("xc_moments", both - alone, psi, size)),
        (1.0, ("xc_potential", all_of_it - both, square, size)),
        (word / 4, ("J and K", timed.ms["J and K"], exchange, word * part * products.b.size)),
    ]


def eri_classes(basis: str) -> list[dict[str, Any]]:
    """ns per primitive quartet of every pair of shell-pair classes, and the flops counted."""
    rng = np.random.default_rng(0)
    numbers = [6] * 12 + [1] * 12
    settings = Settings(basis=basis, grid_level=0)
    mol = Molecule(numbers, 0.05 * rng.normal(size=(len(numbers), 3)))
    shape = shape_of(mol.numbers, basis, False, 0, pad=False)
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    arrays = tables.shape_tables(shape, settings), conformer.conformer(mol, shape, settings)
    strips = jax.jit(lambda t, m: pair_strips(gather_atoms(plan, t, m, np.float32)))(*arrays)

    def seconds(blocks: tuple) -> float:
        part: TilePlan = dataclasses.replace(plan, blocks=blocks)
        run = jax.jit(lambda s: eri_matrix(part, s))
        jax.block_until_ready(run(strips))
        return harness.processor_seconds(lambda: jax.block_until_ready(run(strips)), ROUNDS)

    # An empty work list still sorts the primitives and clears the matrix.
    first = plan.blocks[0]
    none = {"bra_strip": first.bra_strip[:0], "ket_strip": first.ket_strip[:0]}
    overhead = seconds((dataclasses.replace(first, **none),))
    found = []
    for block in plan.blocks:
        bra, ket = plan.strips[block.bra], plan.strips[block.ket]
        n, m = _primitives(plan, bra), _primitives(plan, ket)
        quartets = n * (m + 1) / 2 if block.bra == block.ket else n * m
        ns = 1e9 * (seconds((block,)) - overhead) / quartets
        flops = flops_of(bra.pair_class, ket.pair_class, n / len(bra.pair_strip))
        name = f"{_name(bra)}|{_name(ket)}"
        found.append({"name": name, "quartets": quartets, "ns": ns, "flops": flops})
    return found


def _primitives(plan: TilePlan, strips: Any) -> int:
    """Primitive pairs of a class."""
    members = strips.pair_class.members
    return sum(primitives_of(plan.layout, m) * len(m.first) for m in members)


def _name(strips: Any) -> str:
    sides = strips.pair_class.ls_a, strips.pair_class.ls_b
    return " ".join("".join("spdf"[l] for l in ls) for ls in sides)


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
    sides = [[p for l in ls for p in _powers(l)] for ls in (pair_class.ls_a, pair_class.ls_b)]
    return sum(
        bool(np.all(np.array(h) <= np.add(a, b)))
        for a, b in itertools.product(*sides)
        for h in hermite_powers(pair_class.order)
    )


def _powers(l: int) -> list[tuple[int, int, int]]:
    return [h for h in hermite_powers(l) if sum(h) == l][: 2 * l + 1]


if __name__ == "__main__":
    sys.exit(main())
