"""Where the time of one conformer goes, stage by stage.

Each stage is compiled by itself, and its processor time taken on one core (pin it: taskset -c 0).
So the sum leaves out what XLA gains by fusing stages.  The last line is the whole program, per
conformer.  `--jk ri` has the stages of density fitting in place of those of all integrals.
`--forces` has those of the gradient, at the guess, in place of the energy's.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import harness
from benchmarks.engine.sides import peak_memory
from pyscf_ipu import Molecule, Settings, Solver
from pyscf_ipu.codelets import describe, strip_primitives
from pyscf_ipu.fitting.neighbours import along_molecule, pair_rows, reordered
from pyscf_ipu.fitting.operators import Root
from pyscf_ipu.fitting.repulsion import coulomb_exchange
from pyscf_ipu.fitting.three_index import Auxiliary, auxiliary_of, metric, three_index
from pyscf_ipu.gradient.electron_repulsion import repulsion_gradient
from pyscf_ipu.gradient.one_electron import one_electron_gradient
from pyscf_ipu.gradient.pairs import by_nuclei
from pyscf_ipu.gradient.points.exchange_correlation import (
    gradient_of_weights,
    points_gradient,
    points_vertex,
)
from pyscf_ipu.grid.blocks import grid_blocks
from pyscf_ipu.grid.orbital_products import by_orbitals
from pyscf_ipu.grid.xc_matrix import PORTABLE, exchange_correlation
from pyscf_ipu.integrals import one_electron
from pyscf_ipu.integrals.strips import pair_strips
from pyscf_ipu.integrals.supermatrix import (
    pack_density,
    pair_order,
    repulsion,
    supermatrix,
)
from pyscf_ipu.kohn_sham.hamiltonian import guess_density
from pyscf_ipu.numerics.columns import columns_of_density
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.scf.diis import diis_start, diis_step
from pyscf_ipu.scf.orbitals import density_of, orthonormal, reorthonormalise, similar
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.auxiliary import auxiliary_layout, auxiliary_level
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional

ROUNDS = 15


def main() -> int:
    parser = molecule_parser(__doc__, __file__)
    parser.add_argument("--xc", default="b3lyp5")
    parser.add_argument("--precision", default="float32", choices=["float32", "float64"])
    parser.add_argument("--jk", default="exact", choices=["exact", "ri"])
    parser.add_argument("--forces", action="store_true")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    settings = Settings(
        basis=args.basis,
        xc=args.xc,
        grid_level=args.grid_level,
        precision=args.precision,
        jk=args.jk,
    )
    mol = Molecule.from_smiles(args.smiles, seed=0)
    solver = Solver(settings)
    shape = solver.shape(mol)
    print(f"{args.smiles}: {shape.label}\n{describe()}")
    if args.forces:
        with settings.numerics.scope():
            found = force_stages(mol, settings, args.rounds)
        total = sum(found.values())
        harness.table(
            {"stage": n, "ms": ms, "percent": 100 * ms / total} for n, ms in found.items()
        )
        print(f"sum of the stages {total:.1f} ms")
        return harness.finish(args.out, {"forces_ms": found})
    with settings.numerics.scope():
        once, cycle = stages(mol, settings, args.rounds)
    result = solver.run(shape, [mol])[0]
    batch = [mol] * min(solver.batch_size(shape), args.rounds)
    whole = harness.processor_seconds(lambda: solver.run(shape, batch), min(5, args.rounds))
    whole *= 1e3 / len(batch)
    cycles = int(result.cycles)
    total = sum(once.values()) + cycles * sum(cycle.values())
    harness.table(
        {"stage": name, "ms": ms, "times": times, "percent": 100 * times * ms / total}
        for times, part in ((1, once), (cycles, cycle))
        for name, ms in part.items()
    )
    print(f"sum of the stages {total:.1f} ms, whole program {whole:.1f} ms per conformer")
    print(f"largest resident memory {peak_memory():.0f} MiB, compilation included")
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

    def __init__(self, mol: Molecule, settings: Settings, rounds: int = ROUNDS) -> None:
        self.settings, self.rounds = settings, rounds
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
        seconds = harness.processor_seconds(
            lambda: jax.block_until_ready(compiled(*args)), self.rounds
        )
        self.ms[name] = 1e3 * seconds
        return out

    def hamiltonian(self) -> tuple[Any, Any, Any]:
        """What the SCF starts from: supermatrix or B, grid blocks, density."""
        plan, dtype, xc = self.plan, self.dtype, self.xc
        gather = lambda t, c: gather_atoms(plan, t, c, dtype)  # noqa: E731
        atoms = gather(self.table, self.place)
        strips = self.run("pairs", lambda t, c: pair_strips(gather(t, c)), self.table, self.place)
        self.run("one-electron", one_electron, atoms, strips)
        if self.fitted:
            g = self.fit(atoms)
        else:
            g = self.run("supermatrix", lambda s: supermatrix(plan, s, xc.exchange), strips)
        grid = self.run("grid and AO values", lambda a: grid_blocks(a, xc), atoms)
        return g, grid, guess_density(atoms)

    @property
    def fitted(self) -> bool:
        return self.settings.form(self.shape.n_ao) == "ri"

    def fit(self, atoms: Any) -> Any:
        """B of 1/r, by its steps."""
        layout = auxiliary_layout(self.shape, auxiliary_level(self.settings))
        order = along_molecule(atoms)
        pairs = pair_rows(self.plan, order)
        print(f"{layout.n_functions} auxiliary functions, {len(pairs)} AO pairs", flush=True)
        wide = atoms.astype(jnp.float64)
        sides = jax.jit(lambda a: auxiliary_of(a, layout).sides)(wide)
        strips = self.run("pairs in float64", pair_strips, wide)

        def integrals(strips: Any, sides: Any) -> Any:
            return three_index(self.plan, strips, Auxiliary(layout, sides))

        def solution(matrix: Any, rows: Any) -> Any:
            return Root(matrix).over_pairs(rows, pairs, self.dtype), order

        rows = self.run("three-index integrals", integrals, strips, sides)
        matrix = self.run("metric", lambda s: metric(Auxiliary(layout, s)), sides)
        return self.run("factor and solution", solution, matrix, rows)

    def repulsion(self, g: Any, density: Any) -> None:
        """Coulomb and exchange of a cycle."""
        if not self.fitted:
            order = pair_order(self.plan)
            self.run("G d", lambda g, d: repulsion(g, pack_density(d), order), g, density)
            return
        products, order = g
        columns = self.run("columns of the density", columns_of_density, density)
        # The guess has more columns than a density of orbitals.
        count = jnp.minimum(columns.count, self.place.n_occupied)
        columns = columns._replace(vectors=columns.vectors[order], count=count)
        none = columns._replace(count=jnp.zeros((), jnp.int32))
        d = reordered(pack_density(density), order)
        self.run("J alone", coulomb_exchange, products, d, none)
        alone = self.ms.pop("J alone")
        self.run("J and K", coulomb_exchange, products, d, columns)
        share = float(jnp.mean(products.present))
        print(f"J alone: {alone:.1f} ms; {100 * share:.0f} % of the AO pairs count", flush=True)


def stages(
    mol: Molecule, settings: Settings, rounds: int = ROUNDS
) -> tuple[dict[str, float], dict[str, float]]:
    """Milliseconds of each stage: those of a conformer, and those of a cycle."""
    timed = Stages(mol, settings, rounds)
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

    products = by_orbitals(PORTABLE, timed.xc, many_aos=False)
    timed.run("XC", lambda g, d: exchange_correlation(timed.xc, g, d, products), grid, d)
    timed.repulsion(g, d)
    timed.run("eigh", jnp.linalg.eigh, overlap)
    timed.run("DIIS and matrix algebra", algebra, diis_start(8, n, dtype), overlap)
    return once, timed.ms


def force_stages(mol: Molecule, settings: Settings, rounds: int = ROUNDS) -> dict[str, float]:
    """Milliseconds of each stage of the gradient with exact integrals, at the guessed density."""
    timed = Stages(mol, settings, rounds)
    plan, xc = timed.plan, timed.xc
    atoms = jax.jit(lambda t, c: gather_atoms(plan, t, c, timed.dtype))(timed.table, timed.place)
    d = guess_density(atoms)
    strips = timed.run("pairs", pair_strips, atoms)
    one, _ = timed.run("one-electron", one_electron_gradient, atoms, strips, d, d)
    timed.run("repulsion", lambda s, d: repulsion_gradient(plan, s, d, xc.exchange), strips, d)
    timed.run("from pairs to nuclei", by_nuclei, atoms, one)
    grid = timed.run("grid and AO values", lambda a: grid_blocks(a, xc), atoms)
    products = by_orbitals(PORTABLE, xc, many_aos=False)
    d = products.prepared(d, timed.dtype, False)
    moments = timed.run("density", lambda ao, d: products.moments(ao, d, xc.needs_tau), grid.ao, d)
    vertex = jax.vmap(partial(points_vertex, xc))
    energy, factors = timed.run("functional", vertex, moments, grid.weights)

    def points(a: Any, grid: Any, factors: Any, d: Any) -> Any:
        return points_gradient(a, xc, grid.ao, grid.places, factors, d)

    timed.run("XC at fixed weights", points, atoms, grid, factors, d)
    timed.run("Becke weights", gradient_of_weights, atoms, energy)
    return timed.ms


if __name__ == "__main__":
    sys.exit(main())
