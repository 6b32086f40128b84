"""Small molecules with empty slots, as every test of density fitting reads them."""

from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
import pytest
from oracle import QUICK
from pyscf import df

from pyscf_ipu import Molecule, Settings
from pyscf_ipu.shapes import conformer, tables
from pyscf_ipu.shapes.atoms import gather_atoms
from pyscf_ipu.shapes.auxiliary import auxiliary_layout, auxiliary_level
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

MOL = Molecule([7, 6, 1], [[0.0, 0.0, 0.1], [2.3, 0.3, 0.0], [3.3, 1.1, -1.6]])
HYDROGEN = Molecule([1, 1], [[0.1, 0.0, 0.2], [0.9, 0.8, -0.4]])
OMEGA = 0.4


@dataclass(frozen=True)
class Case:
    """A level of theory and all that follows from it."""

    settings: Settings
    strip: int = 10**6
    mol: Molecule = MOL

    @cached_property
    def shape(self):
        return shape_of(
            self.mol.numbers, self.settings.basis, self.settings.cart, self.settings.grid
        )

    @cached_property
    def plan(self):
        return tile_plan(self.shape, 1, self.strip)

    @cached_property
    def layout(self):
        return auxiliary_layout(self.shape, auxiliary_level(self.settings))

    @cached_property
    def arrays(self):
        tabulated = tables.shape_tables(self.shape, self.settings)
        return tabulated, conformer.conformer(self.mol, self.shape, self.settings)

    def atoms(self, tabulated, conf, dtype=np.float64):
        return gather_atoms(self.plan, tabulated, conf, dtype)

    @cached_property
    def order(self):
        """Our AO of every AO of PySCF."""
        return conformer.ao_order(self.mol, self.shape, self.settings)

    @cached_property
    def field(self):
        """PySCF's fitted mean field, and its auxiliary molecule."""
        mole = self.settings.pyscf_mole(self.mol.numbers, self.mol.positions)
        field = self.settings.pyscf_method(mole)
        return field, df.make_auxmol(mole, field.with_df.auxbasis)


def case(basis, cart=False, strip=10**6, mol=MOL):
    return Case(
        Settings(basis=basis, xc="hf", grid_level=0, precision="float64", cart=cart, jk="ri"),
        strip,
        mol,
    )


PORTABLE = [
    pytest.param(HYDROGEN, id="hydrogen"),
    pytest.param(MOL, id="g shells", marks=pytest.mark.long),
]
"""Portable forms take long to compile: a program for every pair of classes."""


def in_float64(function, *args):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, jax.jit(function, compiler_options=QUICK)(*args))
