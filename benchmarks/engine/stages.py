"""Where the time of one conformer goes, stage by stage.

Each stage is compiled by itself, and its processor time taken on one core (pin it: taskset -c 0).
So the sum leaves out what XLA gains by fusing stages.  The last line is the whole program, per
conformer.
"""

import argparse
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import harness
from pyscf_ipu import Molecule, Settings, Solver
from pyscf_ipu.codelets import describe, strip_primitives
from pyscf_ipu.grid.blocks import grid_blocks
from pyscf_ipu.grid.xc_matrix import PORTABLE, exchange_correlation
from pyscf_ipu.integrals import one_electron
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.integrals.supermatrix import pack_density, repulsion, supermatrix
from pyscf_ipu.kohn_sham.hamiltonian import guess_density
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.diis import diis_start, diis_step
from pyscf_ipu.scf.orbitals import density_of, orthonormal, reorthonormalise, similar
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc import functional

ROUNDS = 15


def main() -> int:
    parser = molecule_parser(__doc__, __file__)
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
        once, cycle = stages(mol, settings)
    result = solver.run(shape, [mol])[0]
    batch = [mol] * solver.batch_size(shape)
    whole = 1e3 * harness.processor_seconds(lambda: solver.run(shape, batch), 5) / len(batch)
    cycles = int(result.cycles) + 1
    total = sum(once.values()) + cycles * sum(cycle.values())
    harness.table(
        {"stage": name, "ms": ms, "times": times, "percent": 100 * times * ms / total}
        for times, part in ((1, once), (cycles, cycle))
        for name, ms in part.items()
    )
    print(f"sum of the stages {total:.1f} ms, whole program {whole:.1f} ms per conformer")
    figures = {"once_ms": once, "cycle_ms": cycle, "cycles": cycles, "whole_ms": whole}
    return harness.finish(args.out, figures)


def molecule_parser(doc: str | None, file: str) -> argparse.ArgumentParser:
    """Options of a script that looks at one molecule."""
    parser = harness.parser(doc, file)
    parser.add_argument("--smiles", default="CCC1CC1OCC=O")
    parser.add_argument("--basis", default="sto-3g")
    parser.add_argument("--grid-level", type=int, default=0)
    return parser


class Stages:
    """The stages of one molecule's program, each compiled by itself; `ms` has their times."""

    def __init__(self, mol: Molecule, settings: Settings) -> None:
        self.dtype, self.xc = settings.numerics.scf_dtype, functional(settings.xc)
        self.shape = Solver(settings).shape(mol)
        self.plan = tile_plan(self.shape, strip_primitives=strip_primitives())
        self.table = jax.device_put(tables.shape_tables(self.shape, settings))
        self.place = jax.device_put(conformer.conformer(mol, self.shape, settings))
        self.ms: dict[str, float] = {}

    def run(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Compile and time one stage; its result."""
        compiled = jax.jit(function)
        out = jax.block_until_ready(compiled(*args))
        seconds = harness.processor_seconds(lambda: jax.block_until_ready(compiled(*args)), ROUNDS)
        self.ms[name] = 1e3 * seconds
        return out

    def hamiltonian(self) -> tuple[Any, Any, Any]:
        """What the SCF starts from: supermatrix, grid blocks, density."""
        plan, dtype, xc = self.plan, self.dtype, self.xc
        gather = lambda t, c: gather_atoms(plan, t, c, dtype)  # noqa: E731
        atoms = gather(self.table, self.place)
        strips = self.run("pairs", lambda t, c: pair_strips(gather(t, c)), self.table, self.place)
        self.run("one-electron", one_electron, atoms, strips)
        g = self.run("supermatrix", lambda s: supermatrix(plan, s, xc.exchange), strips)
        grid = self.run("grid and AO values", lambda a: grid_blocks(a, xc), atoms)
        return g, grid, guess_density(atoms)


def stages(mol: Molecule, settings: Settings) -> tuple[dict[str, float], dict[str, float]]:
    """Milliseconds of each stage: those of a conformer, and those of a cycle."""
    timed = Stages(mol, settings)
    g, grid, d = timed.hamiltonian()
    n, dtype = timed.shape.n_ao, timed.dtype
    noise = np.random.default_rng(0).normal(size=(n, n)).astype(dtype) / n
    overlap = jnp.asarray(np.eye(n, dtype=dtype) + 0.05 * (noise + noise.T))
    basis = timed.run("orthonormaliser", lambda s: orthonormal(Pair(s, jnp.zeros_like(s))), overlap)
    once, timed.ms = timed.ms, {}

    def algebra(history: Any, f: Any) -> Any:
        matrix = similar(f, basis.inverse)
        history, out = diis_step(history, jnp.int32(3), matrix, matrix - matrix.T, jnp.bool_(True))
        c = reorthonormalise(basis.inverse, basis.overlap)
        return history, out, density_of(c, jnp.int32(5))

    timed.run("XC", lambda g, d: exchange_correlation(timed.xc, g, d, PORTABLE), grid, d)
    timed.run("G d", lambda g, d: repulsion(g, pack_density(d)), g, d)
    timed.run("eigh", jnp.linalg.eigh, overlap)
    timed.run("DIIS and matrix algebra", algebra, diis_start(8, n, dtype), overlap)
    return once, timed.ms


if __name__ == "__main__":
    sys.exit(main())
