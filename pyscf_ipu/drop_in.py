"""PySCF's `dft.RKS` with the SCF of this package: everything else in PySCF works on the result.

    from pyscf_ipu.interop import RKS
    field = RKS(mole, xc="b3lyp")      # in place of pyscf.dft.RKS(mole, xc="b3lyp")
    field.kernel()
    field.mulliken_pop(), field.dip_moment(), pyscf.tools.cubegen.density(mole, ...)

The class is a subclass, so that defaults and names are PySCF's: functional "LDA,VWN", grid level 3,
`b3lyp` with VWN-RPA.  What this package cannot do is an error and not a fallback.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pyscf import dft, gto
from pyscf.dft import gen_grid, libxc, radi
from pyscf.pbc.gto import Cell

from pyscf_ipu.errors import InvalidMolecule, UnknownBasis
from pyscf_ipu.kohn_sham import rks
from pyscf_ipu.molecule import Molecule
from pyscf_ipu.precision import PRECISIONS
from pyscf_ipu.settings import Settings
from pyscf_ipu.solver import Solver
from pyscf_ipu.xc import FUNCTIONALS, functional

# What PySCF's object may not ask for, as the value that stands for "not asked for".
UNSUPPORTED = {
    "level_shift": (0, None),
    "damp": (0, None),
    "conv_tol_grad": (None,),
    "callback": (None,),
    "with_df": (None,),
    "omega": (None, 0),
    "disp": (None,),
    "init_guess": ("minao", "atom"),
}

# Methods of which another implementation (solvents, smearing, external fields) would be ignored.
HOOKS = ("get_hcore", "get_ovlp", "get_jk", "get_veff", "get_fock", "get_occ", "eig", "energy_nuc")

GRIDS = {
    "prune": gen_grid.nwchem_prune,
    "radi_method": radi.treutler,
    "becke_scheme": gen_grid.original_becke,
    "radii_adjust": radi.treutler_atomic_radii_adjust,
    "atom_grid": {},
}

_GRID_MESSAGE = "grids.{} is not PySCF's default: only grids.level (0 to 9) can be chosen"


class RKS(dft.rks.RKS):
    """A PySCF mean-field object whose `kernel` runs `pyscf_ipu.rks`.

    mol        a built `gto.Mole`: closed shell, one named all-electron basis (s, p, d), H to Cl.
    xc         any PySCF text for one of this package's functionals; "LDA,VWN" as in PySCF.
    precision  "float64", "mixed" or "float32", as for `rks`.

    `kernel()` sets e_tot (Hartree), mo_energy [N] (Hartree), mo_coeff [N, N] and mo_occ [N] in the
    AO order of `mol`, converged and cycles, and returns e_tot.  `grids.level` and `max_cycle` are
    taken over; the thresholds are those of the precision.  Programs are kept for the next call of
    this object, for example after `reset(mol)`.
    """

    _keys = {"precision"}  # noqa: RUF012  PySCF's list of attributes that are no typing mistakes

    def __init__(self, mol: gto.Mole, xc: str = "LDA,VWN", precision: str = "float64") -> None:
        super().__init__(mol, xc)
        if precision not in PRECISIONS:
            raise ValueError(f"unknown precision {precision!r}: use one of {', '.join(PRECISIONS)}")
        self.precision = precision
        self.conv_tol = PRECISIONS[precision].energy_change
        self._solver: Solver | None = None

    def settings(self) -> Settings:
        """The level of theory in this package's words.

        Raises ValueError for what it does not have, InvalidMolecule for a molecule that it cannot
        compute, UnknownBasis.
        """
        _check_options(self)
        _check_grids(self.grids)
        level = Settings(
            basis=basis_name(self.mol),
            xc=functional_name(self.xc),
            grid_level=self.grids.level,
            precision=self.precision,
            cart=bool(self.mol.cart),
            max_cycles=self.max_cycle,
        )
        return level.check()

    def scf(self, dm0: Any = None, **kwargs: Any) -> float:
        """Run the SCF and fill this object; the energy in Hartree.  Errors as for `settings`."""
        if dm0 is not None or kwargs:
            what = ", ".join(["dm0"] * (dm0 is not None) + list(kwargs))
            raise ValueError(
                f"kernel() got {what}: the SCF starts from atomic densities and takes no arguments"
            )
        molecule, settings = molecule_of(self.mol), self.settings()
        if self._solver is None or self._solver.settings != settings:
            self._solver = Solver(settings)
        found = rks(molecule, orbitals=True, solver=self._solver)
        self.e_tot = float(found.energy)
        self.converged = bool(found.converged)
        self.cycles = int(found.cycles)
        self.mo_energy = np.asarray(found.mo_energy)
        self.mo_coeff = np.asarray(found.mo_coeff)
        self.mo_occ = np.where(np.arange(len(self.mo_energy)) < molecule.n_electrons // 2, 2.0, 0.0)
        self._finalize()
        return self.e_tot

    def kernel(self, dm0: Any = None, **kwargs: Any) -> float:
        """See `scf`."""
        return self.scf(dm0, **kwargs)


def molecule_of(mole: gto.Mole) -> Molecule:
    """The atoms of a PySCF molecule; InvalidMolecule for what stands beside plain nuclei."""
    if isinstance(mole, Cell):
        raise InvalidMolecule("a periodic Cell: only molecules are computed; use a gto.Mole")
    if mole.has_ecp():
        raise InvalidMolecule(
            "the Mole has effective core potentials: use an all-electron basis and no ecp="
        )
    if mole.nucmod:
        raise InvalidMolecule("the Mole has nuclei of finite size: only point charges; drop nucmod")
    return Molecule.from_pyscf(mole)


def functional_name(xc: str) -> str:
    """This package's name of a PySCF functional, told by its libxc numbers.

    Raises ValueError with the names that there are.
    """
    known = {name: libxc.parse_xc(functional(name).pyscf_name) for name in FUNCTIONALS}
    try:
        asked = libxc.parse_xc(xc)
    except (KeyError, ValueError) as error:
        raise ValueError(f"PySCF does not know the functional {xc!r}: {error}") from error
    for name, parts in known.items():
        if parts[0] == asked[0] and sorted(parts[1]) == sorted(asked[1]):
            return name
    names = ", ".join(repr(functional(name).pyscf_name) for name in FUNCTIONALS)
    raise ValueError(f"functional {xc!r} is not offered: use one of {names}")


def basis_name(mole: gto.Mole) -> str:
    """The one named basis set of a molecule.

    Raises UnknownBasis if there are several, or shells that are not those of the name.
    """
    given = mole.basis.values() if isinstance(mole.basis, dict) else [mole.basis]
    names = {name if isinstance(name, str) else None for name in given}
    name = names.pop() if len(names) == 1 else None
    if name is None:
        raise UnknownBasis(
            "the Mole's basis is not one name for all atoms: build it with, for example, "
            "basis='def2-svp'"
        )
    for i in range(mole.natm):
        element = mole.atom_pure_symbol(i)
        if mole._basis[mole.atom_symbol(i)] != gto.format_basis({element: name})[element]:
            raise UnknownBasis(
                f"the shells of atom {i} ({mole.atom_symbol(i)}) are not those of basis {name!r}: "
                "build the Mole with an unchanged, named basis"
            )
    return name


def _check_options(field: RKS) -> None:
    """ValueError for a setting of the SCF that would be ignored."""
    for name, allowed in UNSUPPORTED.items():
        value = getattr(field, name, allowed[0])
        if value not in allowed:
            raise ValueError(
                f"{name}={value!r} is not offered by this package's SCF: leave it at "
                f"{allowed[0]!r}, or use pyscf.dft.RKS"
            )
    lowest = PRECISIONS[field.precision].energy_change
    if field.conv_tol < lowest:
        raise ValueError(
            f"conv_tol={field.conv_tol:g} Hartree is below what precision={field.precision!r} "
            f"converges to, {lowest:g}: leave it there"
        )
    for name in HOOKS:
        if name in vars(field) or getattr(type(field), name) is not getattr(dft.rks.RKS, name):
            raise ValueError(
                f"{name} is not PySCF's own: this package's SCF would ignore what was added to it "
                "(a solvent, smearing, a field); use pyscf.dft.RKS"
            )
    if not field.diis or field.nlc:
        raise ValueError("diis and nlc are not switchable here: leave them, or use pyscf.dft.RKS")


def _check_grids(grids: gen_grid.Grids) -> None:
    """ValueError for a grid that is not one of PySCF's levels with its defaults."""
    for name, default in GRIDS.items():
        if getattr(grids, name) != default:
            raise ValueError(_GRID_MESSAGE.format(name))
    if not np.array_equal(np.asarray(grids.atomic_radii), radi.BRAGG_RADII):
        raise ValueError(_GRID_MESSAGE.format("atomic_radii"))
