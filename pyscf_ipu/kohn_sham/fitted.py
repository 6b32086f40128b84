"""A machine whose electron repulsion is fitted; all else stays as it is."""

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp

from pyscf_ipu.fitting.operators import operators
from pyscf_ipu.fitting.repulsion import Fitted
from pyscf_ipu.fitting.three_index import auxiliary_of
from pyscf_ipu.integrals.strips import StripData, pair_strips
from pyscf_ipu.numerics.arrays import FloatNN
from pyscf_ipu.numerics.interaction import Interaction
from pyscf_ipu.scf.machine import AffineRepulsion, Machine, Repulsion
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.atoms import Atoms
from pyscf_ipu.shapes.auxiliary import auxiliary_layout, auxiliary_level
from pyscf_ipu.shapes.shape import Shape


def fitted(
    machine: Machine, shape: Shape, settings: Settings, reference: Callable[[Atoms], FloatNN]
) -> Machine:
    """The machine for the form that the settings ask for: itself, or with fitted repulsion.

    Args:
        machine: with its own repulsion.
        shape: of the molecules.
        settings: of the calculation.
        reference: a density close to the converged one, which the guess is.
    """
    if settings.form(shape.n_ao) == "exact":
        return machine
    layout = auxiliary_layout(shape, auxiliary_level(settings))

    def build(atoms: Atoms, strips: tuple[StripData, ...], exchange: Interaction) -> Repulsion:
        wide = atoms.astype(jnp.float64)
        if wide.dtype != atoms.dtype:
            strips = pair_strips(wide)
        auxiliary = auxiliary_of(wide, layout)
        density = reference(atoms)
        found = operators(wide.plan, strips, auxiliary, exchange, density)
        fit = Fitted(density, found)
        return AffineRepulsion(fit.repulsion, fit.repulsion_of_change)

    return replace(machine, repulsion=build)
