"""One molecule as every integral reads it: looked up in the tables once, in one dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Int

from pyscf_ipu.codelets.look_up import look_up
from pyscf_ipu.numerics.arrays import FloatA, FloatMG, FloatMG3
from pyscf_ipu.numerics.two_words import Pair
from pyscf_ipu.shapes.conformer import Conformer
from pyscf_ipu.shapes.layout import Layout
from pyscf_ipu.shapes.tables import ClassTable
from pyscf_ipu.shapes.tile_plan import TilePlan


class Shells(NamedTuple):
    """The n shells of one group."""

    exponents: Pair  # [n, K]
    coefficients: Pair  # [n, K, contractions]
    centre: Pair  # [n, 3] Bohr

    def at(self, index: np.ndarray | Array) -> Shells:
        """Some of them, in the order of `index`."""
        return Shells(*(words.at(index) for words in self))


class Atoms(NamedTuple):
    """The atoms of a molecule in the slots of a plan; a pytree whose structure is the plan."""

    plan: TilePlan
    tables: tuple[ClassTable, ...]
    element: Int[Array, " A"]
    """Row of every atom in the table of its class."""
    charge: FloatA
    """Nuclear charge, less the core electrons of a potential; 0 marks an empty slot."""
    radius: FloatA
    """Becke size, sqrt(Bohr)."""
    nuclei: Pair  # [A, 3] Bohr
    shells: tuple[Shells, ...]  # per group of the layout
    axes: Pair | None = None
    """[3, 3] Along which the spheres of points lie, as columns; None for x, y and z."""
    core: Pair | None = None
    """Core potentials over AO pairs [P], Hartree; None without."""

    @property
    def layout(self) -> Layout:
        return self.plan.layout

    @property
    def dtype(self) -> np.dtype:
        return self.nuclei.dtype

    def astype(self, dtype: DTypeLike) -> Atoms:
        """The atoms in another dtype; float64 has all that came in two words of float32."""
        return self._replace(
            charge=self.charge.astype(dtype),
            radius=self.radius.astype(dtype),
            nuclei=self.nuclei.astype(dtype),
            shells=tuple(Shells(*(words.astype(dtype) for words in s)) for s in self.shells),
            axes=None if self.axes is None else self.axes.astype(dtype),
            core=None if self.core is None else self.core.astype(dtype),
        )

    def on_grid(self, name: Literal["coarse", "vv10"]) -> Atoms | None:
        """The atoms with the points of another grid around each; None if the tables have none."""
        tables = []
        for table in self.tables:
            grid = getattr(table, name)
            if grid is None:
                return None
            tables.append(table._replace(points=grid.points, weights=grid.weights))
        return self._replace(tables=tuple(tables))

    def classes(self) -> Iterator[tuple[np.ndarray, ClassTable, Array]]:
        """Per slot class: its slots, its table, and the row of each slot's element there."""
        for slots, table in zip(self.layout.slots, self.tables, strict=True):
            yield slots, table, self.element[slots]

    def points(self) -> Iterator[tuple[np.ndarray, FloatMG3, FloatMG]]:
        """Per slot class: its slots, their points from the nucleus (Bohr), volumes (Bohr^3)."""
        for slots, table, rows in self.classes():
            local, volume = table.points.astype(self.dtype), table.weights.astype(self.dtype)
            points = local.value()[rows]
            if self.axes is not None:
                points = jnp.einsum("mgd,xd->mgx", points, self.axes.value(), precision="highest")
            yield slots, points, volume.value()[rows]


def gather_atoms(
    plan: TilePlan, tables: tuple[ClassTable, ...], mol: Conformer, dtype: type
) -> Atoms:
    """Look up everything that a program reads of one molecule."""
    layout, element = plan.layout, mol.element
    rows = [element[slots] for slots in layout.slots]
    charge = jnp.concatenate([t.charge[r] for t, r in zip(tables, rows, strict=True)])
    radius = jnp.concatenate([t.radius[r] for t, r in zip(tables, rows, strict=True)])
    charge, radius = charge.astype(dtype), radius.astype(dtype)
    with jax.named_scope("pairs"):
        shells = gather_shells(layout, tables, mol, dtype=dtype)
    axes = None if mol.axes is None else mol.axes.astype(dtype)
    return Atoms(
        plan,
        tables,
        element,
        charge=charge,
        radius=radius,
        nuclei=mol.positions.astype(dtype),
        shells=shells,
        axes=axes,
        core=None if mol.core is None else mol.core.astype(dtype),
    )


def gather_shells(
    layout: Layout, tables: tuple[ClassTable, ...], mol: Conformer, dtype: type
) -> tuple[Shells, ...]:
    """Look up the shells of one molecule, group by group."""
    wanted = [
        [(getattr(tables[c], name)[s], layout.slots[c]) for c, s in group.source]
        for group in layout.groups
        for name in ("exponents", "coefficients")
    ]
    pairs = [pair.astype(dtype) for pair in look_up(mol.element, wanted)]
    centres = [mol.positions.at(group.atom).astype(dtype) for group in layout.groups]
    return tuple(Shells(*x) for x in zip(pairs[::2], pairs[1::2], centres, strict=True))
