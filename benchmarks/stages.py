"""Where the time of one conformer goes, stage by stage.

    python benchmarks/stages.py
    python benchmarks/stages.py --smiles CCO --basis 6-31g* --grid-level 1

Every stage is compiled by itself and timed on one core (pin it: taskset -c 0), so the sum leaves
out what XLA gains by fusing them; the last line is the whole program, per conformer.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from pool import SINGLE

os.environ.update(SINGLE)  # before JAX is imported: XLA counts threads then

import jax
import jax.numpy as jnp
import numpy as np

from pyscf_ipu import Molecule, Settings, Solver, tables
from pyscf_ipu.codelets import describe, strip_primitives
from pyscf_ipu.diis import diis_start, diis_step
from pyscf_ipu.exchange_correlation import (
    atom_data,
    exchange_correlation,
    grid_blocks,
)
from pyscf_ipu.hamiltonian import guess_density
from pyscf_ipu.integrals import eri_matrix, one_electron
from pyscf_ipu.jk import pack_density, repulsion, supermatrix
from pyscf_ipu.pairs import gather_shells
from pyscf_ipu.precision import Pair
from pyscf_ipu.scf import density_of, orthonormal, reorthonormalise, similar
from pyscf_ipu.strips import pair_strips
from pyscf_ipu.tiles import tile_plan
from pyscf_ipu.xc import functional

ROUNDS = 15


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    molecule_arguments(parser)
    parser.add_argument("--xc", default="b3lyp5")
    parser.add_argument("--precision", default="float32", choices=["float32", "float64"])
    args = parser.parse_args()
    settings = Settings(
        basis=args.basis, xc=args.xc, grid_level=args.grid_level, precision=args.precision
    )
    mol = Molecule.from_smiles(args.smiles, seed=0)
    solver = Solver(settings)
    shape = solver.shape(mol)
    print(f"{args.smiles}: {shape.label}\n{describe()}")
    with settings.numerics.scope():
        once, cycle = stages(mol, settings, shape)
    result = solver.run(shape, [mol])
    whole = median_ms(lambda: solver.run(shape, [mol] * solver.batch_size(shape)), 5)
    cycles = int(result.cycles[0]) + 1
    total = sum(once.values()) + cycles * sum(cycle.values())
    for name, ms in once.items():
        print(f"  {name:28} {ms:8.2f} ms once       {100 * ms / total:5.1f} %")
    for name, ms in cycle.items():
        print(f"  {name:28} {ms:8.2f} ms x {cycles:2d}       {100 * cycles * ms / total:5.1f} %")
    print(f"  {'sum of the stages':28} {total:8.1f} ms")
    print(f"  {'whole program':28} {whole / solver.batch_size(shape):8.1f} ms per conformer")
    return 0


def molecule_arguments(parser: argparse.ArgumentParser) -> None:
    """Which molecule is looked at, in which basis and on which grid."""
    parser.add_argument("--smiles", default="CCC1CC1OCC=O")
    parser.add_argument("--basis", default="sto-3g")
    parser.add_argument("--grid-level", type=int, default=0)


def stages(mol: Molecule, settings: Settings, shape: Any) -> tuple[dict, dict]:
    """Milliseconds of each stage: those of a conformer, and those of a cycle."""
    dtype, xc = settings.numerics.scf_dtype, functional(settings.xc)
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    layout = plan.layout
    table = jax.device_put(tables.shape_tables(shape, settings))
    place = jax.device_put(tables.conformer(mol, shape, settings))
    nuclei, (charge, _) = place.positions.astype(dtype), atom_data(layout, table, place)
    once: dict[str, float] = {}
    cycle: dict[str, float] = {}

    def run(where: dict[str, float], name: str, function: Callable[..., Any], *args: Any) -> Any:
        compiled = jax.jit(function)
        out = jax.block_until_ready(compiled(*args))
        where[name] = median_ms(lambda: jax.block_until_ready(compiled(*args)), ROUNDS)
        return out

    strips = run(once, "pairs", lambda t, m: pair_strips(plan, t, m, dtype), table, place)
    run(once, "one-electron", lambda s, q, r: one_electron(plan, s, q, r), strips, charge, nuclei)
    matrix = run(once, "ERI", lambda s: eri_matrix(plan, s), strips)
    g = run(once, "supermatrix", lambda m: supermatrix(plan, m, xc.exact_exchange), matrix)
    shells = gather_shells(layout, table, place, dtype)
    grid = run(
        once, "grid and AO values",
        lambda t, s, m: grid_blocks(layout, xc, t, s, m, dtype), table, shells, place,
    )  # fmt: skip
    d = guess_density(layout, table, place)
    n = shape.n_ao
    noise = np.random.default_rng(0).normal(size=(n, n)).astype(dtype) / n
    overlap = jnp.asarray(np.eye(n, dtype=dtype) + 0.05 * (noise + noise.T))
    basis = run(once, "orthonormaliser", lambda s: orthonormal(Pair(s, jnp.zeros_like(s))), overlap)
    run(cycle, "XC", lambda g, d: exchange_correlation(xc, g, d), grid, d)
    run(cycle, "G d", lambda g, d: repulsion(g, pack_density(d)), g, d)
    run(cycle, "eigh", jnp.linalg.eigh, overlap)

    def algebra(history: Any, f: Any) -> Any:
        matrix = similar(f, basis.inverse)
        history, out = diis_step(history, jnp.int32(3), matrix, matrix - matrix.T)
        c = reorthonormalise(basis.inverse, basis.overlap)
        return history, out, density_of(c, jnp.int32(5))

    run(cycle, "DIIS and matrix algebra", algebra, diis_start(8, n, dtype), overlap)
    return once, cycle


def median_ms(function: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times))


if __name__ == "__main__":
    sys.exit(main())
