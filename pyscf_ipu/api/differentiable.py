"""The energy as a JAX function of the positions, with the gradient program as its derivative."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.custom_batching import sequential_vmap
from jax.typing import ArrayLike
from jaxtyping import Bool, Float

from pyscf_ipu.api.advice import explains_keywords
from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.host.modes import plain_jax
from pyscf_ipu.gradient.program import energy_gradient
from pyscf_ipu.kohn_sham.program import State, kohn_sham
from pyscf_ipu.molecule.checks import MIN_DISTANCE_BOHR, as_molecule
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.numerics.arrays import FloatN, FloatNN
from pyscf_ipu.numerics.two_words import Pair, two_sum
from pyscf_ipu.settings import Settings, usable
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.solver.solver import Solver

Positions = Float[Array, "A 3"]
Energy = Float[Array, ""]


class _Converged(NamedTuple):
    """What the derivative needs of a finished SCF."""

    positions: Positions
    density: FloatNN
    orbitals: FloatNN
    levels: FloatN
    sound: Bool[Array, ""]


@explains_keywords
def energy_function(
    molecule: Molecule, settings: Settings | None = None
) -> Callable[[Positions], Energy]:
    """The energy of a molecule as a JAX function of its positions.

    The function takes positions [A, 3] in Bohr, in the order of the molecule's atoms, and returns
    the energy in Hartree.  It is NaN, as is its derivative, where the SCF does not converge and
    where two atoms are closer than `pi.rks` allows.  Called with numbers, the function raises
    InvalidMolecule for such atoms; inside a transformation it cannot see them.

    `jax.grad`, `jax.value_and_grad`, `jax.jvp`, `jax.jit` and `jax.vmap` work on it.  Its
    derivative is that of `pi.forces` (P. Pulay, Mol. Phys. 17, 197 (1969),
    doi:10.1080/00268976900100941): nothing differentiates through the SCF.  Where several states
    lie near each other, as in torn bonds, the SCF may end in another one than that of `pi.rks`.
    One program is compiled for the energy and one for the derivative, whatever the positions.

    With precision "mixed" or "float64", make and call it inside `with jax.enable_x64(True)`; the
    energy is then in float64.  In float32 it has the seven digits of that type, the derivative
    those of `pi.forces`.  Without the 64-bit mode a transformation rounds positions to float32 on
    their way in, so keep the molecule near the origin.

    Args:
        molecule: Atoms, charge and their order; its own positions do not matter.
        settings: Level of theory; default `Settings()`.

    Raises:
        InvalidMolecule: As `Solver.shape`; by the function, as `Molecule.check`.
        UsageError: A setting cannot be used, the accuracy does not reach forces, the level has a
            correction for dispersion or core potentials, both made outside JAX, its grid turns
            with the molecule, or float64 is asked or called for without JAX's 64-bit mode.
        TypeError: These are not one Molecule and its Settings.
        NotImplementedError: When a second derivative is asked for.
    """
    if not isinstance(molecule, Molecule):
        raise TypeError(
            f"one Molecule is needed, not a {type(molecule).__name__}: {as_molecule(molecule)}"
        )
    level = usable(settings)
    _check_level(level)
    molecule.check(level.precision)
    molecule.refuse_cores(
        level.basis, "PySCF computes outside JAX: use an all-electron basis, or pi.forces"
    )
    solve, slope = map(_only_once, _programs(molecule, level))

    @jax.custom_jvp
    def energy(positions: Positions) -> Energy:
        return solve(positions)[0]

    @energy.defjvp
    def derivative(positions: tuple[Positions], steps: tuple[Positions]) -> tuple[Energy, Energy]:
        value, converged = solve(*positions)
        return value, jnp.vdot(slope(converged), *steps)

    def checked(positions: ArrayLike) -> Energy:
        """The energy in Hartree at positions [A, 3] in Bohr."""
        return _called(energy, molecule, level, positions=positions)

    return checked


def _check_level(level: Settings) -> None:
    """Raise UsageError for a level whose energy is no JAX function of the positions."""
    level.check_forces()
    if level.dispersion is not None:
        raise UsageError(
            f"xc={level.xc!r} has a correction for dispersion, which JAX cannot differentiate: "
            "take a functional without one, or use pi.forces"
        )
    if level.grid.turns:
        raise UsageError(
            f"grid_kind={level.grid_kind!r} has a grid that turns with the molecule, whose turning "
            'has no derivative here: take grid_kind="pyscf", or pi.forces, which holds the grid'
        )
    _check_64_bits(level)


def _programs(
    molecule: Molecule, level: Settings
) -> tuple[Callable[[Positions], tuple[Energy, _Converged]], Callable[[_Converged], Positions]]:
    """The energy of positions with all that its derivative needs, and the derivative."""
    numerics = level.numerics
    shape = Solver(level).shape(molecule)
    table = tables.shape_tables(shape, level)
    template = conformer.conformer(molecule, shape, level)
    slots = conformer.slot_order(molecule, shape, level)
    atoms = np.argsort(slots)[-molecule.n_atoms :]

    def placed(positions: Positions) -> conformer.Conformer:
        """The atoms in their slots, in two words of the SCF's dtype."""
        words = _words(positions, numerics.scf_dtype)
        there = (slots >= 0)[:, None]
        hi, lo = (jnp.where(there, x[slots], 0) for x in words)
        return jax.tree.map(jnp.asarray, template)._replace(positions=Pair(hi, lo))

    @sequential_vmap
    @jax.jit
    def solve(positions: Positions) -> tuple[Energy, _Converged]:
        solution = kohn_sham(shape, level, jax.tree.map(jnp.asarray, table), mol=placed(positions))
        total = solution.terms.total()
        sound = (
            solution.converged & numerics.holds(solution.overlap_smallest) & jnp.isfinite(total.hi)
        )
        sound &= _apart(positions) >= MIN_DISTANCE_BOHR[level.precision]
        dtype = numerics.result_dtype
        energy = jnp.where(sound, total.value(), jnp.nan).astype(positions.dtype)
        density, orbitals = solution.density.astype(dtype), solution.orbitals.astype(dtype)
        levels = solution.orbital_energy.astype(dtype)
        return energy, _Converged(positions, density, orbitals, levels=levels, sound=sound)

    @sequential_vmap
    @jax.jit
    def slope(converged: _Converged) -> Positions:
        state = State(
            placed(converged.positions),
            converged.density,
            converged.orbitals,
            levels=converged.levels,
        )
        known = jax.tree.map(jnp.asarray, table)
        gradient = energy_gradient(shape, level, known, state=state)[atoms]
        return jnp.where(converged.sound, gradient, jnp.nan).astype(converged.positions.dtype)

    return solve, slope


def _called(
    energy: Callable[[Positions], Energy],
    molecule: Molecule,
    level: Settings,
    positions: ArrayLike,
) -> Energy:
    """The energy at given positions, checked as far as they are numbers."""
    _check_64_bits(level)
    known = not any(isinstance(x, Tracer) for x in jax.tree.leaves(positions))
    given = np.asarray(positions) if known else jnp.asarray(positions)
    if given.shape != (molecule.n_atoms, 3):
        raise UsageError(
            f"positions have the shape {given.shape}: this molecule needs "
            f"({molecule.n_atoms}, 3), in Bohr"
        )
    dtype = level.numerics.energy_dtype
    if not known:
        middle = jax.lax.stop_gradient(given.mean(axis=0)).astype(given.dtype)
        return energy(jnp.asarray(given - middle, dtype))
    there = Molecule(molecule.numbers, given, molecule.charge)
    there.check(level.precision)
    # About their mean, float32 has places enough, however far away the molecule is.
    near = there.positions - there.positions.mean(axis=0)
    with plain_jax():
        return energy(jnp.asarray(near, dtype))


def _check_64_bits(level: Settings) -> None:
    """Raise UsageError where a level needs float64 and JAX has none."""
    if level.numerics.wants64 and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise UsageError(
            f"precision={level.precision!r} with basis={str(level.basis)!r} and jk={level.jk!r} "
            "computes in float64: make and call the function inside `with jax.enable_x64(True)`, "
            "or choose float32, exact and a basis such as 6-31g*"
        )


def _words(positions: Positions, dtype: type) -> tuple[Array, Array]:
    """Positions about their mean as two words, hi + lo, whatever their own dtype is."""
    middle = jax.lax.stop_gradient(jnp.mean(positions, axis=0))
    high, low = two_sum(positions, -middle)
    word = high.astype(dtype)
    return word, (high - word.astype(high.dtype) + low).astype(dtype)


def _apart(positions: Positions) -> Energy:
    """The least distance between two atoms in Bohr; infinite for a single atom."""
    i, j = np.triu_indices(len(positions), 1)
    return jnp.min(jnp.linalg.norm(positions[i] - positions[j], axis=-1), initial=jnp.inf)


def _only_once(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a clear error where it would be differentiated itself."""
    once = jax.custom_jvp(fn)

    @once.defjvp
    def refuse(primals: object, tangents: object) -> Any:
        del primals, tangents
        raise NotImplementedError(
            "energy_function has first derivatives only: use jax.grad, jax.value_and_grad or "
            "jax.jvp once; for second derivatives take differences of pi.forces, as "
            "pi.frequencies does"
        )

    return once
