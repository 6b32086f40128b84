"""PySCF in float64 as the oracle, and the molecules that the tests share.

All molecules of SMALL have two heavy atoms and at most six hydrogens: one shape, one program.
"""

import functools

import jax
import numpy as np
import pytest
from pyscf import dft, gto, scf

from pyscf_ipu import Molecule
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from pyscf_ipu.codelets import codelet_p, library
from pyscf_ipu.xc.registry import functional

NATIVE = pytest.mark.skipif(library() is None, reason="the native codelets were not built")

SMALL = {
    "methanol": "CO",
    "methylamine": "CN",
    "formaldehyde": "C=O",
    "hydrogen cyanide": "C#N",
    "fluoromethane": "CF",
    "methylammonium": "C[NH3+]",
}


@functools.cache
def small(name):
    return Molecule.from_smiles(SMALL[name], seed=7)


def molecule(atoms, charge=0):
    """A Molecule from "O 0 0 0; H ..." in Angstrom."""
    rows = [row.split() for row in atoms.split(";")]
    mole = gto.M(atom=atoms, charge=charge, spin=0, basis="sto-3g", verbose=0)
    positions = np.array([[float(x) for x in row[1:]] for row in rows]) / BOHR_TO_ANGSTROM
    return Molecule(mole.atom_charges(), positions, charge)


WATER = molecule("O 0 0 0.1173; H 0 0.7572 -0.4692; H 0 -0.7572 -0.4692")
METHYL_CHLORIDE = molecule(
    "C 0.1 -0.2 0.3; Cl 0.1 -0.2 2.08; H 1.13 -0.2 -0.05; H -0.41 0.69 -0.05; H -0.41 -1.09 -0.05"
)
TWO_WATERS = molecule(
    "O -1.551007 -0.114520 0; H -1.934259 0.762503 0; H -0.599677 0.040712 0;"
    "O 1.350625 0.111469 0; H 1.680398 -0.373741 -0.758561; H 1.680398 -0.373741 0.758561"
)
"""As in the benchmarks of functionals among Psi4's tests."""
HYDROGEN = Molecule([1, 1], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.4]])


def mole_of(mol, basis="sto-3g", cart=False):
    """The PySCF molecule, atoms in the order given."""
    atoms = list(zip(mol.symbols, mol.positions, strict=True))
    return gto.M(
        atom=atoms,
        unit="Bohr",
        basis=basis,
        charge=mol.charge,
        cart=cart,
        verbose=0,
        max_memory=4e3,
    )


def ground_state(mol, basis="sto-3g", xc="b3lyp", grid_level=0, cart=False):
    """A converged PySCF calculation at the same level of theory."""
    mole = mole_of(mol, basis, cart)
    if xc == "hf":
        field = scf.RHF(mole)
    else:
        field = dft.RKS(mole, xc=functional(xc).pyscf_name)
        if functional(xc).vv10 is None:
            field.nlc = 0
        # PySCF's pairs of points of its own level for them, 3, take a minute.
        field.grids.level = field.nlcgrids.level = grid_level
    field.conv_tol, field.conv_tol_grad, field.max_cycle = 1e-12, 1e-7, 200
    field.kernel()
    assert field.converged
    return field


# For forms whose values are tested, not their speed: LLVM works half as long.
QUICK = {"xla_backend_optimization_level": 0}
# For arithmetic that an optimiser could break: XLA's own level, which users run.
OPTIMISED = {"xla_backend_optimization_level": 3}

WHOLE = 10**6  # primitive pairs: one strip per class
SYSTEMS = {
    "one pair": ([1], "sto-3g", WHOLE),
    "15 pairs": ([1] * 5, "sto-3g", WHOLE),
    "several strips": ([6, 1], "sto-3g", 40),
    "17 in a class": ([6, 7] + [1] * 8, "sto-3g", WHOLE),
    "second row": ([17, 6, 1, 1], "sto-3g", 40),
    "empty slots": ([6, 8, 1], "6-31g", 100),
    "d shells": ([8, 8], "6-31g*", 60),
    "far apart": ([8, 8], "6-31g*", WHOLE),  # Boys functions at arguments in the hundreds
    "general contraction": ([7, 1, 1], "cc-pvdz", WHOLE),
}


def random_molecule(numbers, bohr):
    rng = np.random.default_rng(len(numbers))
    return Molecule(numbers, rng.normal(size=(len(numbers), 3)) * bohr)


def native_and_portable(function, *args):
    """Results of a jitted function with its codelets, and with their portable forms inlined."""
    names = []

    def inlined(*args):
        closed = jax.make_jaxpr(function)(*args)
        return portable(closed.jaxpr, closed.consts, args)

    def portable(jaxpr, consts, args):
        values = dict(zip(jaxpr.constvars, consts, strict=True))
        values |= dict(zip(jaxpr.invars, jax.tree.leaves(args), strict=True))
        for e in jaxpr.eqns:
            operands = [v.val if hasattr(v, "val") else values[v] for v in e.invars]
            if e.primitive is codelet_p:
                names.append(e.params["name"])
                out = e.params["portable"](*map(jax.numpy.asarray, operands))
            else:
                out = e.primitive.bind(*operands, **e.params)
                out = out if e.primitive.multiple_results else [out]
            values |= dict(zip(e.outvars, out, strict=True))
        return [values[v] for v in jaxpr.outvars]

    native = jax.tree.leaves(jax.jit(function)(*args))
    return native, jax.jit(inlined, compiler_options=QUICK)(*args), names
