"""Which settings of a PySCF object `interop.RKS` and `interop.UKS` accept.

PySCF's classes take settings by assignment, and a subclass with another SCF would silently ignore
most of them.  Here everything that would change PySCF's result but not ours is an error.  What only
changes the way to that result is not checked: direct_scf, diis_space, max_memory.
"""

from typing import Any

import numpy as np
from pyscf import dft, gto
from pyscf.data.elements import charge as atomic_number
from pyscf.dft import gen_grid, numint, radi
from pyscf.pbc.gto import Cell
from pyscf.scf.dispersion import parse_dft

from pyscf_ipu.base.errors import InvalidMolecule, UsageError
from pyscf_ipu.elements.basis_sets import pyscf_ecp
from pyscf_ipu.numerics.precision import PRECISIONS
from pyscf_ipu.xc.suffixes.names import mistake

# Settings that are not offered, and the values that mean "not set".
UNSUPPORTED: dict[str, tuple] = {
    "level_shift": (0, None),
    "damp": (0, None),
    "conv_tol_grad": (None,),
    "callback": (None,),
    "check_convergence": (None,),
    "with_df": (None,),
    "omega": (None, 0),
    "disp": (None, False, ""),
    "nlc": ("", None),
    "small_rho_cutoff": (0, None),
    "diis_file": (None,),
    "irrep_nelec": (None, {}),
    "init_guess": ("minao", "atom"),
}

# What PySCF's SCF calls on its object.  Another implementation (solvents, smearing, external
# fields, a custom energy) would be ignored.
HOOKS = (
    "get_hcore get_ovlp get_jk get_j get_k get_veff get_fock get_grad get_occ eig _eigh "
    "check_linear_dependency make_rdm1 get_init_guess initialize_grids energy_nuc energy_elec "
    "energy_tot do_disp do_nlc get_dispersion pre_kernel post_kernel"
).split()

GRIDS = {
    "prune": gen_grid.nwchem_prune,
    "radi_method": radi.treutler,
    "becke_scheme": gen_grid.original_becke,
    "radii_adjust": radi.treutler_atomic_radii_adjust,
    "atom_grid": {},
    "cutoff": gen_grid.CUTOFF,
}

_GRID_MESSAGE = "{0}.{1} is not PySCF's default: only {0}.level (0 to 9) can be chosen"

# Attributes of every NumInt, or checked as the object's own `omega`.
_NUMINT_ATTRIBUTES = {"omega", "stdout", "verbose"}


def check_molecule(mole: gto.Mole) -> None:
    """Raise InvalidMolecule if there is more than plain nuclei and their electrons."""
    if isinstance(mole, Cell):
        raise InvalidMolecule("a periodic Cell: only molecules are computed; use a gto.Mole")
    if not isinstance(mole.cart, bool | np.bool_ | int):
        raise InvalidMolecule(
            f"the Mole has cart={mole.cart!r}: PySCF has cartesian or spherical functions, not "
            "both; for cartesian d with spherical f call pyscf_ipu.rks(..., cart='6d7f')"
        )
    if mole.nucmod or np.any(mole._atm[:, gto.mole.NUC_MOD_OF] == gto.mole.NUC_GAUSS):
        raise InvalidMolecule(
            "the Mole has nuclei of finite size: only point charges are computed; leave out nucmod"
        )
    for i in range(mole.natm):
        if gto.mole.is_ghost_atom(mole.atom_symbol(i)):
            raise InvalidMolecule(
                f"atom {i} of the Mole, {mole.atom_symbol(i)}, is a ghost, functions without a "
                "nucleus: only real atoms are computed; leave it out, or use pyscf.dft.RKS"
            )
    numbers = [atomic_number(mole.atom_symbol(i)) for i in range(mole.natm)]
    cores = [(mole._ecp.get(mole.atom_symbol(i)) or [0])[0] for i in range(mole.natm)]
    charges = (mole.atom_charges() + cores).tolist()
    if charges != numbers:
        raise InvalidMolecule(
            f"the Mole's nuclear charges are {charges}: they must be the "
            f"atomic numbers, {numbers}; build a new Mole"
        )
    if mole.omega:
        raise InvalidMolecule(
            f"the Mole has omega={mole.omega:g}, a screened Coulomb operator: only the plain one "
            "is computed; set mole.omega = 0"
        )


def check_cores(mole: gto.Mole, basis: str) -> None:
    """Raise InvalidMolecule unless all core potentials are those of the basis set."""
    for i in range(mole.natm):
        element = mole.atom_pure_symbol(i)
        expected = gto.format_ecp(pyscf_ecp(basis, [atomic_number(element)])).get(element)
        if mole._ecp.get(mole.atom_symbol(i)) != expected:
            what = "has none" if expected is None else f"has one: build the Mole with ecp={basis!r}"
            raise InvalidMolecule(
                f"atom {i} of the Mole, {element}, has another core potential than the basis "
                f"{basis!r}, which {what}; other potentials are not computed"
            )


OURS = "pyscf_ipu.interop.mean_field"
"""Where both have methods in place of PySCF's."""


def check_options(field: Any) -> None:
    """Raise UsageError for a setting of an `RKS` that its SCF would ignore."""
    for name, allowed in UNSUPPORTED.items():
        value = getattr(field, name, allowed[0])
        if np.ndim(value) or value not in allowed:
            raise UsageError(
                f"{name}={value!r} is not offered by this package's SCF: leave it at "
                f"{allowed[0]!r}, or use pyscf.dft.RKS"
            )
    if not field.diis:
        raise UsageError("diis cannot be switched off here: leave it on, or use pyscf.dft.RKS")
    lowest = PRECISIONS[field.precision].energy_change
    if field.conv_tol < lowest:
        raise UsageError(
            f"conv_tol={field.conv_tol:g} Hartree is below what precision={field.precision!r} "
            f"converges to, {lowest:g}: leave it unset, or set it to {lowest:g} or more"
        )
    theirs = dft.uks.UKS if isinstance(field, dft.uks.UKS) else dft.rks.RKS
    for name in HOOKS:
        value = getattr(type(field), name, None)
        known = value is getattr(theirs, name, None) or value.__module__ == OURS
        if name in vars(field) or not known:
            raise UsageError(
                f"{name} is not PySCF's own: this package's SCF would ignore what was added to it "
                "(a solvent, smearing, a field); use pyscf.dft.RKS"
            )
    _check_integrator(field._numint)


def check_functional(xc: object) -> None:
    """Raise UsageError unless this is a name, without a dispersion correction."""
    if not isinstance(xc, str):
        raise UsageError(
            f"xc is {xc!r}: give the name of a functional; custom functionals are not offered"
        )
    try:
        name, nlc, dispersion = parse_dft(xc)
    except NotImplementedError as error:
        ours = "" if mistake(xc) else f"; pyscf_ipu.rks(..., xc={xc!r}) has it"
        raise UsageError(f"PySCF does not offer the functional {xc!r}: {error}{ours}") from error
    if dispersion is not None or nlc != "":
        without = f"give xc={name!r}, or " if nlc == "" else ""
        raise UsageError(
            f"xc={xc!r} asks for the dispersion correction {dispersion!r}, which this class leaves "
            f"to others: {without}use pyscf_ipu.rks, which adds it, or pyscf.dft.RKS"
        )


def check_grids(attribute: str, grids: Any, mole: gto.Mole) -> None:
    """Raise UsageError unless `grids` or `nlcgrids` is one of PySCF's levels with its defaults.

    Points that exist already, as PySCF's post-processing leaves them, must be those of the
    molecule: the grid is built once more to compare.
    """
    if type(grids) is not gen_grid.Grids:
        raise UsageError(
            f"{attribute} is a {type(grids).__name__}: only pyscf.dft.Grids are offered"
        )
    for name, default in GRIDS.items():
        if getattr(grids, name) != default:
            raise UsageError(_GRID_MESSAGE.format(attribute, name))
    if not np.array_equal(np.asarray(grids.atomic_radii), radi.BRAGG_RADII):
        raise UsageError(_GRID_MESSAGE.format(attribute, "atomic_radii"))
    fresh: Any = gen_grid.Grids(mole)
    for name in sorted(set(vars(grids)) - set(vars(fresh)) - grids._keys):
        raise UsageError(
            f"{attribute}.{name} would be ignored: only {attribute}.level (0 to 9) can be chosen"
        )
    if grids.coords is None and grids.weights is None:
        return
    fresh.verbose, fresh.level, fresh.alignment = 0, grids.level, grids.alignment
    fresh.build()
    same = (
        np.array_equal(np.asarray(getattr(grids, name)), getattr(fresh, name))
        for name in ("coords", "weights")
    )
    if not all(same):
        raise UsageError(
            f"coords and weights of {attribute} are not those of level {grids.level} at this "
            f"geometry: custom points are not offered; call {attribute}.reset()"
        )


def check_integrals(field: Any) -> None:
    """Raise UsageError for electron repulsion integrals that are not the molecule's.

    PySCF's post-processing leaves such integrals too; they are computed once more to compare.
    """
    if field._eri is not None and not np.array_equal(
        field._eri, field.mol.intor("int2e", aosym="s8")
    ):
        raise UsageError(
            "_eri holds other integrals than the molecule's: this package's SCF computes its own; "
            "set it to None, or use pyscf.dft.RKS"
        )


def _check_integrator(integrator: object) -> None:
    """Raise UsageError for a NumInt with a functional or methods of its own."""
    extra = sorted(set(vars(integrator)) - _NUMINT_ATTRIBUTES)
    if type(integrator) is not numint.NumInt or extra:
        what = ", ".join(extra) or f"is a {type(integrator).__name__}"
        raise UsageError(
            f"_numint is not PySCF's own ({what}; define_xc_ sets some): this package's SCF would "
            "ignore it; name a functional by xc=, or use pyscf.dft.RKS"
        )
