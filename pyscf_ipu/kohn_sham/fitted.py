"""A machine whose electron repulsion is fitted; all else stays as it is."""

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp

from pyscf_ipu.codelets import strip_primitives
from pyscf_ipu.fitting.neighbours import IntN, along_molecule
from pyscf_ipu.fitting.operators import Operators, operators
from pyscf_ipu.fitting.repulsion import Fitted
from pyscf_ipu.fitting.three_index import auxiliary_of
from pyscf_ipu.integrals.strips import StripData, pair_strips
from pyscf_ipu.machines.machine import AffineRepulsion, Machine, Repulsion
from pyscf_ipu.numerics.arrays import FloatNN
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.atoms import Atoms, gather_atoms
from pyscf_ipu.shapes.auxiliary import AuxiliaryLayout, auxiliary_layout, auxiliary_level
from pyscf_ipu.shapes.conformer import Conformer
from pyscf_ipu.shapes.shape import Shape
from pyscf_ipu.shapes.tables import ClassTable
from pyscf_ipu.shapes.tile_plan import tile_plan
from pyscf_ipu.xc.registry import functional

Reference = Callable[[Atoms], FloatNN]
"""A density close to the converged one, which the guess is."""


def fitted(machine: Machine, shape: Shape, settings: Settings, reference: Reference) -> Machine:
    """The machine for the form that the settings ask for: itself, or with fitted repulsion.

    Args:
        machine: with its own repulsion.
        shape: of the molecules.
        settings: of the calculation.
        reference: the density whose field is known in float64.
    """
    if settings.form(shape.n_ao) == "exact":
        return machine
    layout = auxiliary_layout(shape, auxiliary_level(settings))

    def fit(atoms: Atoms, strips: tuple[StripData, ...], exchange: Interaction) -> Fitted:
        own = strips if atoms.dtype == jnp.float64 else None
        density, order = reference(atoms), along_molecule(atoms)
        return Fitted(
            density, _fit(atoms, own, layout, exchange=exchange, reference=density, order=order)
        )

    def build(atoms: Atoms, strips: tuple[StripData, ...], exchange: Interaction) -> Repulsion:
        return _repulsion(fit(atoms, strips, exchange))

    def of_spins(atoms: Atoms, strips: tuple[StripData, ...], exchange: Interaction) -> Repulsion:
        made = fit(atoms, strips, exchange)
        return AffineRepulsion(made.repulsion_of_spins, made.repulsion_of_changes)

    return replace(machine, repulsion=build, repulsion_of_spins=of_spins)


def fit_of(
    shape: Shape,
    settings: Settings,
    reference: Reference,
    tables: tuple[ClassTable, ...],
    mol: Conformer,
) -> Operators:
    """The fit alone, for a machine without float64; to be jitted in JAX's 64-bit mode.

    Its AOs stay in the order of slots: only the native form leaves out AO pairs that are far apart.
    """
    plan = tile_plan(shape, strip_primitives=strip_primitives())
    atoms = gather_atoms(plan, tables, mol, dtype=settings.numerics.scf_dtype)
    layout = auxiliary_layout(shape, auxiliary_level(settings))
    return _fit(
        atoms, None, layout, exchange=functional(settings.xc).exchange, reference=reference(atoms)
    )


def with_fit(machine: Machine, fit: Operators, reference: Reference) -> Machine:
    """The machine with a fit that is given, whose density is `reference`."""

    def build(atoms: Atoms, strips: tuple[StripData, ...], exchange: Interaction) -> Repulsion:
        del strips, exchange
        return _repulsion(Fitted(reference(atoms), fit))

    return replace(machine, repulsion=build)


def _fit(
    atoms: Atoms,
    strips: tuple[StripData, ...] | None,
    layout: AuxiliaryLayout,
    exchange: Interaction,
    reference: FloatNN,
    order: IntN | None = None,
) -> Operators:
    """The operators, computed in float64; `strips` if there are some in it already."""
    wide = atoms.astype(jnp.float64)
    strips = pair_strips(wide) if strips is None else strips
    auxiliary = auxiliary_of(wide, layout)
    return operators(
        wide.plan, strips, auxiliary, exchange=exchange, reference=reference, order=order
    )


def _repulsion(fit: Fitted) -> Repulsion:
    return AffineRepulsion(fit.repulsion, fit.repulsion_of_change)
