"""PySCF's `dft.RKS` and `dft.UKS` with this package's SCF: all else in PySCF works on the result::

    from pyscf_ipu.interop import RKS
    field = RKS(mole, xc="b3lyp")      # in place of pyscf.dft.RKS(mole, xc="b3lyp")
    field.kernel()
    field.mulliken_pop(), field.dip_moment(), pyscf.tools.cubegen.density(mole, ...)

They are subclasses, so that defaults and names are PySCF's: functional "LDA,VWN", grid level 3,
`b3lyp` with VWN-RPA.  What this package cannot do is an error, not a fallback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pyscf import dft, gto, lib
from pyscf.dft import libxc
from pyscf.scf import chkfile
from pyscf.scf.hf import SCF_Scanner

from pyscf_ipu.api.advice import explains_keywords
from pyscf_ipu.api.energies import rks, uks
from pyscf_ipu.base.errors import UnknownBasis, UsageError
from pyscf_ipu.elements.auxiliary.choice import pyscf_auxiliary_basis
from pyscf_ipu.elements.basis_sets import basis_entry, is_qm9
from pyscf_ipu.elements.spellings import plain_name
from pyscf_ipu.interop.mean_field_checks import (
    check_cores,
    check_functional,
    check_grids,
    check_integrals,
    check_molecule,
    check_options,
)
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.numerics.precision import PRECISIONS
from pyscf_ipu.results.result import RKSResult
from pyscf_ipu.scf.lowest.guess import SpinGuess
from pyscf_ipu.settings import Settings
from pyscf_ipu.settings.choices import check_field
from pyscf_ipu.solver.shared import shared_solver
from pyscf_ipu.solver.solver import Solver
from pyscf_ipu.xc.registry import functional
from pyscf_ipu.xc.suffixes.names import FUNCTIONALS, WITH_VV10

# The class that comes next in RKS and in UKS.
_Theirs = dft.rks.RKS if TYPE_CHECKING else object


class MeanField(_Theirs):
    """The base of RKS and UKS: an SCF in place of PySCF's, and what depends on it."""

    _keys: ClassVar = {"jk"}  # attributes of which PySCF's check does not warn
    small_rho_cutoff = 0  # the engine drops no points; older PySCF does, with 1e-7

    @explains_keywords
    def __init__(
        self,
        mol: gto.Mole,
        xc: str = "LDA,VWN",
        *,
        precision: str = "float64",
        jk: Literal["exact", "ri", "auto"] = "exact",
    ) -> None:
        super().__init__(mol, xc)
        self.precision = precision
        self.jk: Literal["exact", "ri", "auto"] = jk
        self._solver: Solver | None = None
        self._twin: dft.rks.RKS | dft.uks.UKS | None = None

    @property
    def precision(self) -> str:
        """ "float64", "mixed" or "float32"; UsageError on setting another."""
        return self._precision

    @precision.setter
    def precision(self, name: str) -> None:
        check_field("precision", name)
        self._precision = name

    @property
    def conv_tol(self) -> float:
        """Largest change of the energy in the last cycle, Hartree: the precision's unless set."""
        return vars(self).get("conv_tol", PRECISIONS[self.precision].energy_change)

    @conv_tol.setter
    def conv_tol(self, value: float) -> None:
        vars(self)["conv_tol"] = value

    def settings(self) -> Settings:
        """The level of theory in this package's words.

        Raises:
            UsageError: this package does not have it; UnknownBasis if that is the basis set.
            InvalidMolecule: this package cannot compute the molecule.
        """
        check_options(self)
        level = Settings(
            basis=basis_name(self.mol),
            xc=functional_name(self.xc),
            grid_level=self.grids.level,
            precision=self.precision,
            cart=bool(self.mol.cart),
            max_cycles=self.max_cycle,
            jk=self.jk,
            nlc_grid=self.nlcgrids.level,
        ).check()
        check_cores(self.mol, level.basis)
        check_grids("grids", self.grids, self.mol)
        if level.has_vv10:
            check_grids("nlcgrids", self.nlcgrids, self.mol)
        check_integrals(self)
        return level

    def scf(self, dm0: object = None, **kwargs: object) -> float:
        """Run the SCF and fill this object; the energy in Hartree.  Errors as for `settings`."""
        if not isinstance(self, RKS | UKS):
            raise TypeError(
                f"this {type(self).__name__} was made from pyscf_ipu's RKS or UKS, whose SCF is "
                "theirs alone: convert with to_uks(), to_gks() or to_ghf(), which give PySCF's own "
                "classes"
            )
        if dm0 is not None or kwargs:
            what = ", ".join(["dm0"] * (dm0 is not None) + list(kwargs))
            raise UsageError(
                f"kernel() got {what}: the SCF starts from atomic densities; call kernel() without "
                "arguments, or use pyscf.dft.RKS"
            )
        molecule, settings = molecule_of(self.mol), self.settings()
        self.build(self.mol)  # PySCF's warnings of misspelt attributes
        self._twin = None
        if self._solver is None or self._solver.settings != settings:
            self._solver = shared_solver(settings)
        result = self._computed(molecule, self._solver)
        self.e_tot = float(result.energy)
        self.converged = bool(result.converged)
        self.cycles = int(result.cycles)
        self.mo_energy = np.asarray(result.mo_energy)
        self.mo_coeff = np.asarray(result.mo_coeff)
        counts = np.array(molecule.n_occupied(settings.basis))[: self.mo_energy.ndim]
        each = np.arange(self.mo_energy.shape[-1]) < counts[:, None]
        self.mo_occ = each.astype(float) if self.mo_energy.ndim == 2 else 2.0 * each[0]
        if self.chkfile:
            chkfile.save_mol(self.mol, self.chkfile)
            names = ("e_tot", "mo_energy", "mo_coeff", "mo_occ")
            self.dump_chk({name: getattr(self, name) for name in names})
        self._finalize()
        return self.e_tot

    def kernel(self, dm0: object = None, **kwargs: object) -> float:
        """Run `scf`."""
        return self.scf(dm0, **kwargs)

    def copy(self) -> MeanField:
        """A shallow copy with grids of its own: PySCF's would share them, and `reset` both."""
        new = super().copy()
        new.grids, new.nlcgrids = self.grids.copy(), self.nlcgrids.copy()
        return new

    def reset(self, mol: gto.Mole | None = None) -> MeanField:
        """Reset as in PySCF, and discard the density-fitting object."""
        self._twin = None
        return super().reset(mol)

    def as_scanner(self) -> MeanField | Scanner:
        """A copy that is called with a Mole, or a geometry as `Mole.set_geom_` takes it."""
        if isinstance(self, lib.SinglePointScanner):
            return self
        name = type(self).__name__ + Scanner.__name_mixin__
        return lib.set_class(Scanner(self.copy()), (Scanner, type(self)), name)

    def to_pyscf(self) -> dft.rks.RKS | dft.uks.UKS:
        """Give this state in PySCF's class, whose `kernel` is PySCF's; fitted where this is."""
        plain: Any = self.copy()
        ours = RKS if isinstance(self, RKS) else UKS
        plain.__class__ = lib.replace_class(type(self), ours, ours.__bases__[1])
        for name in ("_precision", "_solver", "_twin", "jk"):
            del plain.__dict__[name]
        plain.__dict__.pop("guess", None)  # which only UKS has, and only once it is set
        if not self._is_fitted():
            return plain
        auxiliary = pyscf_auxiliary_basis(self.mol, basis_name(self.mol), self.xc)
        return plain.density_fit(auxbasis=auxiliary)

    def _is_fitted(self) -> bool:
        """Whether J and K come from density fitting."""
        if self.jk != "auto":
            return self.jk == "ri"
        settings = self.settings()
        return settings.form(shared_solver(settings).shape(molecule_of(self.mol)).n_ao) == "ri"

    def get_jk(self, *args: Any, **kwargs: Any) -> Any:
        """PySCF's J and K, fitted where this object's energy is."""
        if not self._is_fitted():
            return super().get_jk(*args, **kwargs)
        if self._twin is None or self._twin.mol is not self.mol:
            self._twin = self.to_pyscf()  # kept: it holds the fit
        return self._twin.get_jk(*args, **kwargs)  # type: ignore[union-attr]

    def nuc_grad_method(self) -> Any:
        """PySCF's gradients, fitted where this object's energy is."""
        if self._is_fitted():
            return self.to_pyscf().nuc_grad_method()
        return super().nuc_grad_method()

    Gradients = nuc_grad_method

    def to_uks(self, xc: str | None = None) -> dft.uks.UKS:
        """PySCF's unrestricted object with these orbitals; its SCF is PySCF's."""
        return self.to_pyscf().to_uks(xc)  # type: ignore[return-value]

    def to_gks(self, xc: str | None = None) -> dft.gks.GKS:
        """PySCF's generalized object with these orbitals; its SCF is PySCF's."""
        return self.to_pyscf().to_gks(xc)  # type: ignore[return-value]


class RKS(MeanField, dft.rks.RKS):
    """A PySCF mean-field object whose `kernel` runs `pyscf_ipu.rks`.

    `kernel()` sets e_tot (Hartree), mo_energy [N] (Hartree), mo_coeff [N, N] and mo_occ [N] in the
    AO order of `mol`, converged and cycles, writes `chkfile`, and returns e_tot.  `grids.level`,
    `nlcgrids.level` and `max_cycle` are taken over; the thresholds are those of the precision.
    Programs are kept for the next call of this object, for example after `reset(mol)`, and for its
    `as_scanner()`.

    Args:
        mol: a built `gto.Mole`: closed shell, one named basis (s to f) with its own `ecp`, H to Rn.
        xc: any PySCF text for one of this package's functionals; "LDA,VWN" as in PySCF.
        precision: "float64", "mixed" or "float32", as for `rks`.
        jk: "exact", "ri" or "auto", as for `rks`; "ri" is what PySCF's `density_fit()` computes.
    """

    def _computed(self, molecule: Molecule, solver: Solver) -> RKSResult:
        return rks(molecule, orbitals=True, solver=solver)


class UKS(MeanField, dft.uks.UKS):
    """A PySCF mean-field object whose `kernel` runs `pyscf_ipu.uks`; otherwise as RKS.

    Orbitals, levels and occupations have a first axis of two spins, and the multiplicity is that of
    `mol.spin`.  `guess`, an attribute, is "atoms", "mixed", or the unpaired electrons of each atom.
    """

    _keys: ClassVar = {"jk", "guess"}
    guess: SpinGuess = "atoms"

    def _computed(self, molecule: Molecule, solver: Solver) -> RKSResult:
        return uks(molecule, guess=self.guess, orbitals=True, solver=solver)


class Scanner(SCF_Scanner):
    """PySCF's scanner without its guess, which is the density of the geometry before."""

    def __call__(self: Any, mol_or_geom: object, **kwargs: object) -> float:
        """The energy in Hartree of a Mole, or of this molecule at another geometry."""
        is_mole = isinstance(mol_or_geom, gto.Mole)
        mole = mol_or_geom if is_mole else self.mol.set_geom_(mol_or_geom, inplace=False)
        self.reset(mole)
        return self.kernel(**kwargs)


def molecule_of(mole: gto.Mole) -> Molecule:
    """The atoms of a PySCF molecule; InvalidMolecule if it has more than plain nuclei."""
    check_molecule(mole)
    return Molecule.from_pyscf(mole)


def functional_name(xc: object) -> str:
    """This package's name of a PySCF functional, found by its libxc numbers.

    Raises:
        UsageError: there is none; the message lists the names.
    """
    check_functional(xc)
    names = sorted(FUNCTIONALS, key=lambda name: name not in WITH_VV10)  # PySCF adds VV10, too
    known = {name: libxc.parse_xc(functional(name).pyscf_name) for name in names}
    try:
        asked = libxc.parse_xc(xc)
    except (KeyError, ValueError) as error:
        raise UsageError(f"PySCF does not know the functional {xc!r}: {error}") from error
    for name, parts in known.items():
        if parts[0] == asked[0] and sorted(parts[1]) == sorted(asked[1]):
            if functional(name).dispersion is not None:  # PySCF computes it without
                raise UsageError(
                    f"{xc!r} is the functional of {name!r}, whose dispersion correction this class "
                    f"leaves to others: use pyscf_ipu.rks(..., xc={name!r}), or pyscf.dft.RKS"
                )
            return name
    offered = ", ".join(repr(functional(name).pyscf_name) for name in FUNCTIONALS)
    raise UsageError(f"functional {xc!r} is not offered: use one of {offered}")


def basis_name(mole: gto.Mole) -> str:
    """The one named basis set of a molecule.

    Raises:
        UnknownBasis: there are several, or the shells are not those of the named set.
    """
    given = list(mole.basis.values()) if isinstance(mole.basis, dict) else [mole.basis]
    texts = [name for name in given if isinstance(name, str)]
    if len(texts) < len(given) or len({plain_name(name) for name in texts}) != 1:
        raise UnknownBasis(
            "the Mole's basis is not one name for all atoms: build it with, for example, "
            "basis='def2-svp'"
        )
    name = texts[0]
    first = {mole.atom_symbol(i): i for i in reversed(range(mole.natm))}
    for symbol, i in first.items():
        element = mole.atom_pure_symbol(i)
        if is_qm9(name):
            raise UnknownBasis(
                f"basis {name!r} of PySCF has other d functions than Gaussian's, which QM9 has and "
                "which the name means here: call pyscf_ipu.rks for those, or pyscf.dft.RKS"
            )
        if mole._basis[symbol] != gto.format_basis({element: basis_entry(name, element)})[element]:
            raise UnknownBasis(
                f"the shells of atom {i} ({symbol}) are not those of basis {name!r}: "
                "build the Mole with an unchanged, named basis"
            )
    return name
