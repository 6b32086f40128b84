"""The level of theory and the numerics of a calculation, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.nearest import explaining
from pyscf_ipu.elements.spellings import plain_name
from pyscf_ipu.settings.choices import (
    ACCURATE,
    AUTO_AOS,
    FORMS,
    KINDS,
    UsualBasis,
    check_field,
    plain,
)
from pyscf_ipu.settings.keywords import MISTAKES
from pyscf_ipu.settings.presets import preset
from pyscf_ipu.xc.suffixes.names import (
    OWN_BASIS,
    WITH_VV10,
    dispersion_of,
    mistake,
    one_spelling,
    without_suffix,
)

if TYPE_CHECKING:
    import numpy as np
    from pyscf.dft.gen_grid import Grids
    from pyscf.gto import Mole
    from pyscf.scf.hf import SCF

    from pyscf_ipu.elements.atomic_grid import Grid
    from pyscf_ipu.numerics.precision import Precision
    from pyscf_ipu.xc.suffixes.names import Dispersion


NLC_GRID = 3
"""PySCF's level of grids for VV10's pairs."""


@explaining(MISTAKES, {})
@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a restricted Kohn-Sham calculation is done; all fields are given by name.

    Making one checks all but the basis and installed packages (`check`), and imports neither JAX
    nor PySCF.

    Raises:
        UsageError: (a ValueError) a field cannot be used; the message says what it can be.
    """

    basis: str = UsualBasis("sto-3g")
    """A PySCF basis-set name with s, p, d and f shells; r2scan-3c and b97-3c have their own."""
    xc: str = "b3lyp"
    """hf, lda, pbe, revpbe, bp86, blyp, b3lyp, b3lyp5, pbe0, hse06, cam-b3lyp, wb97x, wb97x-d,
    wb97x-d3, wb97x-d3bj, wb97x-v, tpss, r2scan, m06-2x, wb97m-d3bj, b97-3c, r2scan-3c, b97m-v or
    wb97m-v; for dispersion with -d3bj, -d3 or -d4 behind it: b3lyp-d3bj."""
    grid_level: int | tuple[int, int] = 3
    """Level of PySCF's integration grids, 0 (coarse) to 9 (fine); or two numbers: radial points
    and points of each sphere, for example 75 and 302."""
    precision: str = "float32"
    """float32, mixed (float32 SCF, float64 energy) or float64."""
    cart: bool | Literal["6d7f"] = False
    """Cartesian d and f functions (6 and 10) instead of spherical ones (5 and 7); or 6d7f,
    cartesian d and spherical f, which Gaussian takes for Pople's basis sets."""
    max_cycles: int = 50
    """SCF cycles after which a molecule counts as not converged, or starts again with a level shift
    and as many cycles more."""
    prune: bool = field(default=True, metadata={"added": "0.2"})
    """Leave out some grid points near nuclei and far from them, as PySCF does by default, or keep
    all."""
    grid_kind: Literal["pyscf", "gaussian"] = field(default="pyscf", metadata={"added": "0.2"})
    """Whose grids: PySCF's (Treutler and Ahlrichs's radii, cells by the size of the atoms, spheres
    along x, y, z), or Gaussian's before its pruning (Gill's radii, equal cells, spheres along the
    molecule's principal axes), for which grid_level is a pair and prune is False."""
    jk: Literal["exact", "ri", "auto"] = field(default="exact", metadata={"added": "0.2"})
    """Electron repulsion from all its integrals (exact), by density fitting (ri), or from 129 AOs
    of a shape on by density fitting (auto)."""

    fixed_cycles: int = field(default=0, metadata={"added": "0.2"})
    """Do exactly this many cycles, as PySCF-IPU does (20), and judge the last one as usual; 0 to
    end when converged."""
    accuracy: Literal["energy", "orbitals", "properties"] = field(
        default="properties", metadata={"added": "0.2"}
    )
    """What is to be right, and with it the SCF's threshold and, in float32, how dependent AOs may
    be: the energy alone, orbital energies too, or all else (dipole, charges, forces)."""
    first_cycles: Literal["coarse", "full"] = "coarse"
    """Integrate exchange and correlation in most cycles on few points of the grid, corrected by
    what all points say now and then and at the end (coarse), or on all in every cycle (full)."""
    nlc_grid: int | tuple[int, int] = field(default=NLC_GRID, metadata={"added": "0.3"})
    """The grid of VV10's pairs of points, as `grid_level`, always PySCF's and pruned; it counts for
    functionals with VV10 alone."""
    history: bool = field(default=False, metadata={"added": "0.2"})
    """Keep energy, commutator and gap of every cycle."""

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, plain(getattr(self, one.name)))
            check_field(one.name, getattr(self, one.name))
        if wrong := mistake(self.xc):
            raise UsageError(wrong)
        object.__setattr__(self, "xc", one_spelling(self.xc))
        if not self.has_vv10:  # one level, one fingerprint
            object.__setattr__(self, "nlc_grid", NLC_GRID)
        object.__setattr__(self, "basis", self._checked_basis())
        if self.grid_kind == "gaussian" and (self.prune or isinstance(self.grid_level, int)):
            raise UsageError(
                f'grid_kind="gaussian" with grid_level={self.grid_level} and prune={self.prune}: '
                "Gaussian's levels and pruning are not published; give radial points and points of "
                "each sphere, for example grid_level=(75, 302), and prune=False"
            )
        if self.grid_kind == "gaussian" and self.has_vv10:
            raise UsageError(
                f'grid_kind="gaussian" with xc={self.xc!r}: VV10 is computed on PySCF\'s kind of '
                "grid; leave out grid_kind, or choose a functional without VV10"
            )

    def _checked_basis(self) -> str:
        """The basis set, which a composite method decides; UsageError for another one with it."""
        own = OWN_BASIS.get(self.xc)
        if own is None:
            return self.basis
        if isinstance(self.basis, UsualBasis) or plain_name(self.basis) == plain_name(own):
            if self.cart is False:
                return own
            chosen = f"cart={self.cart!r}"
        else:
            chosen = f"basis={self.basis!r}"
        raise UsageError(
            f"xc={self.xc!r} with {chosen}: this method has the basis set {own!r} with spherical "
            f"functions; leave {chosen.partition('=')[0]} out, or take another functional"
        )

    @classmethod
    def preset(cls, name: str) -> Settings:
        """The level of a published dataset, qm1b, qm9, pubchemqc, ani1x, transition1x, qmugs,
        rmd17, qh9, spice, omol25 or openff, or a method, r2scan-3c or b97-3c (docs/levels.md).

        Raises:
            UsageError: there is no such preset; the message says why a known dataset has none.
        """
        return cls(**preset(name).level)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Settings:
        """The settings of `to_dict`, also after JSON; fields that are left out are the defaults."""
        return cls(**values)

    def check(self) -> Settings:
        """Check what needs PySCF, too, and return these settings.

        Raises:
            UnknownBasis: PySCF does not have the basis set, or it has shells beyond f.
            ImportError: the package of a dispersion correction is missing.
        """
        from pyscf_ipu.elements.basis_sets import supported_basis
        from pyscf_ipu.xc.dispersion.correction import check_installed

        supported_basis(self.basis)
        check_installed(self.dispersion)
        return self

    def check_forces(self) -> None:
        """Raise UsageError where an SCF ends before forces are right."""
        if self.accuracy != "properties":
            raise UsageError(
                f'accuracy="{self.accuracy}" ends the SCF before forces are right: take '
                'accuracy="properties", the default, or leave out forces'
            )

    def to_dict(self) -> dict[str, str | int | bool | list[int]]:
        """The fields by name, for manifests and fingerprints.

        A field added after version 0.1 (metadata "added") whose default is what was done before is
        left out at its default, so that the fingerprints of earlier runs stay the same.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["basis"] = str(self.basis)  # not a `UsualBasis`
        values = {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}  # as JSON
        added = {f.name: f.default for f in fields(self) if "added" in f.metadata}
        return {k: v for k, v in values.items() if k not in added or v != added[k]}

    def form(self, n_ao: int) -> str:
        """How electron repulsion is computed: "exact" or "ri".

        Args:
            n_ao: AOs of a molecule's shape, padding included.
        """
        if self.jk == "auto":
            return "ri" if n_ao > AUTO_AOS else "exact"
        return self.jk

    @property
    def has_coarse_cycles(self) -> bool:
        """Whether an SCF has cycles on few points: where cycles end when it has converged, and
        there is a grid at all."""
        has_grid = without_suffix(self.xc) != "hf"
        return self.first_cycles == "coarse" and not self.fixed_cycles and has_grid

    @property
    def grid(self) -> Grid:
        """The size of atomic grids."""
        from pyscf_ipu.elements.atomic_grid import Grid

        return Grid(self.grid_level, self.prune, self.grid_kind)

    @property
    def vv10_grid(self) -> Grid | None:
        """The size of the grids of VV10's pairs; None for a functional without it."""
        from pyscf_ipu.elements.atomic_grid import Grid

        return Grid(self.nlc_grid) if self.has_vv10 else None

    @property
    def has_vv10(self) -> bool:
        """Whether the functional has the nonlocal correlation VV10."""
        return without_suffix(self.xc) in WITH_VV10

    @property
    def in_words(self) -> str:
        """The level in one line; where the basis has d functions, with their kind."""
        from pyscf_ipu.elements.basis_sets import has_d
        from pyscf_ipu.elements.cartesian import in_words

        kind = f", {in_words(self.cart)}" if self.cart or has_d(self.basis) else ""
        cycles = f", {self.fixed_cycles} cycles" if self.fixed_cycles else ""
        level = f"{self.xc}/{self.basis}{kind}, {self.grid_in_words}, {self.precision}{cycles}"
        return level + FORMS[self.jk] + ACCURATE[self.accuracy]

    @property
    def grid_in_words(self) -> str:
        """ "grid level 3", or what it is instead."""
        name = KINDS[self.grid_kind] + _in_words(self.grid_level)
        pairs = f", VV10 on {_in_words(self.nlc_grid)}" if self.has_vv10 else ""
        return name + ("" if self.prune else " unpruned") + pairs

    def changed(self, **given: Any) -> Settings:
        """The level with other fields; its kind of grid becomes PySCF's where it has to.

        Gaussian's has no levels and no pruning, so it goes with them unless `grid_kind` is given.
        A composite method takes its own basis, and its functions.
        """
        size, prune = given.get("grid_level", self.grid_level), given.get("prune", self.prune)
        usual: dict[str, str | bool] = {}
        if prune or isinstance(size, int):
            usual["grid_kind"] = "pyscf"
        if one_spelling(given.get("xc", self.xc)) in OWN_BASIS:
            usual |= {"basis": UsualBasis(self.basis), "cart": False}
        return replace(self, **usual | given)

    def with_form(self, form: str) -> Settings:
        """The level with one form of electron repulsion for all molecules.

        Args:
            form: "exact" or "ri", as `form` gives it.
        """
        return self if self.jk == form else replace(self, jk=form)

    @property
    def dispersion(self) -> Dispersion | None:
        """The correction that the functional's name asks for, None without one."""
        return dispersion_of(self.xc)

    def without_dispersion(self) -> Settings:
        """The level that programs compute: that of "b3lyp-d3bj" is that of "b3lyp"."""
        return replace(self, xc=without_suffix(self.xc))

    def pyscf_mole(
        self, numbers: np.ndarray, positions: np.ndarray, charge: int = 0, unpaired: int = 0
    ) -> Mole:
        """PySCF's molecule with basis and core potentials of this level, for `pyscf_method`.

        Args:
            numbers: atomic numbers [A].
            positions: [A, 3] in Bohr.
            charge: total charge in e.
            unpaired: electrons, 2S.
        """
        from pyscf import gto

        from pyscf_ipu.elements.basis_sets import pyscf_basis, pyscf_ecp
        from pyscf_ipu.elements.cartesian import pyscf_cart

        return gto.M(
            atom=list(zip(numbers.tolist(), positions.tolist(), strict=True)),
            unit="Bohr",
            charge=charge,
            spin=unpaired,
            basis=pyscf_basis(self.basis, numbers),
            ecp=pyscf_ecp(self.basis, numbers),
            cart=pyscf_cart(self.cart),
            verbose=0,
        )

    def pyscf_method(self, mole: Mole, unrestricted: bool = False) -> SCF:
        """PySCF's Kohn-Sham or Hartree-Fock object of this level, with default thresholds.

        It computes no dispersion.  With jk="auto" it has all integrals: give a level of the form
        that was used (`with_form`).  It has no checkpoint file, which PySCF opens and locks in
        every cycle: a process that is started at that moment inherits the lock, and the next cycle
        ends in an error.

        Args:
            mole: with the level's basis, and cart=`pyscf_cart(self.cart)`.
            unrestricted: for open shells.
        """
        from pyscf import dft, scf

        from pyscf_ipu.elements.auxiliary.choice import pyscf_auxiliary_basis
        from pyscf_ipu.elements.gaussian_grid import pyscf_grids
        from pyscf_ipu.elements.mixed import with_functions
        from pyscf_ipu.xc.registry import functional

        xc = functional(self.xc)
        if xc.kind == "hf":
            field = scf.UHF(mole) if unrestricted else scf.RHF(mole)
        else:
            field = (dft.UKS if unrestricted else dft.RKS)(mole, xc=xc.pyscf_name)
            if not self.has_vv10:
                field.nlc = 0  # type: ignore[assignment]
            _set_size(field.nlcgrids, self.nlc_grid)
            if self.grid_kind == "gaussian":
                assert isinstance(self.grid_level, tuple)
                field.grids = pyscf_grids(mole, self.grid_level)
            else:
                _set_size(field.grids, self.grid_level)
            if not self.prune:
                field.grids.prune = None
        method: Any = field
        if self.jk == "ri":
            auxiliary = pyscf_auxiliary_basis(mole, self.basis, xc.pyscf_name)
            method = field.density_fit(auxbasis=auxiliary)
        method.chkfile = None
        return with_functions(method, self.cart)

    @property
    def numerics(self) -> Precision:
        """The dtypes and thresholds of precision and accuracy; a fit is always made in float64."""
        return self.numerics_of(has_float64=True)

    def numerics_of(self, has_float64: bool, heavy: bool = False) -> Precision:
        """The `numerics` of a machine with float64, or of one without.

        Args:
            has_float64: whether the machine has.
            heavy: whether the molecule may have core potentials, beside which float32 loses 1 meV.
        """
        from pyscf_ipu.elements.basis_sets import FAR, RATHER_FAR, reaches_far
        from pyscf_ipu.numerics.precision import PRECISIONS, for_accuracy, widened

        precision = PRECISIONS[self.precision]
        # Where S has small eigenvalues, mixed would end with an SCF in float64.
        below = RATHER_FAR if precision.refines else FAR
        if has_float64 and (heavy or reaches_far(self.basis, below)):
            precision = widened(precision)
        return replace(for_accuracy(precision, self.accuracy), fits=self.jk != "exact")


def _in_words(size: int | tuple[int, int]) -> str:
    """A size of atomic grids."""
    return f"grid level {size}" if isinstance(size, int) else f"grid {size[0]}x{size[1]}"


def _set_size(grids: Grids, size: int | tuple[int, int]) -> None:
    """Give PySCF's grids a level, or the points of all elements."""
    if isinstance(size, tuple):
        grids.atom_grid = size  # type: ignore[assignment]
    else:
        grids.level = size


def usable(settings: Settings | None) -> Settings:
    """Settings that can be computed with (`Settings.check`); the default ones for None.

    Raises:
        TypeError: this is something else; the message says what makes Settings.
    """
    if settings is not None and not isinstance(settings, Settings):
        raise TypeError(
            f"Settings are needed, not a {type(settings).__name__}: pi.Settings(basis=..., xc=...) "
            "makes them"
        )
    return (settings or Settings()).check()
