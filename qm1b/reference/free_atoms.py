"""Energies of free atoms, by which total energies become atomisation energies.

PySCF computes the neutral atom of each element at a run's level of theory: unrestricted, in
float64, in the multiplicity of its ground state.  Its p orbitals stay on the axes, because each
irreducible representation of D2h keeps its number of electrons.  Left to themselves they turn on
the grid, which has no sphere's symmetry: many a calculation does not converge, and machines differ.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from pyscf_ipu.elements.spellings import ATOMIC_NUMBERS, SYMBOLS
from pyscf_ipu.settings import Settings
from qm1b.reference.recompute import MeanField, converged

DECIMALS = 8
"""Of an energy in Hartree: rounding differs between machines in later ones."""

TOLERANCE_HARTREE = 1e-5
"""Between releases of PySCF and libxc."""

_SHELLS = "s s p s p s d p s d p s f d p".split()
"""In the order in which they are filled, up to radon."""
_ORBITALS = {
    "s": ("Ag",),
    "p": ("B1u", "B2u", "B3u"),
    "d": ("Ag", "Ag", "B1g", "B2g", "B3g"),
    "f": ("Au", "B1u", "B1u", "B2u", "B2u", "B3u", "B3u"),
}
"""The irreducible representations of a shell's orbitals in D2h: of a p shell those of z, y, x."""

OPEN_D = (*range(21, 30), *range(39, 48), *range(57, 80))
"""Scandium to copper, yttrium to silver, lanthanum to gold: the number of electrons of each
irreducible representation does not tell their ground states, and they have no energy here."""


def occupation(number: int, core: int = 0) -> dict[str, tuple[int, int]]:
    """Electrons of each spin, the more numerous first, by irreducible representation of D2h.

    By Hund's rule every orbital of an open shell gets one electron before any gets two.  Of
    elements without an open d or f shell this is the ground state.

    Args:
        number: atomic number, 1 to 86.
        core: electrons that a potential replaces, which fill the lowest shells of each kind.

    Raises:
        ValueError: the element is one of OPEN_D.
    """
    from pyscf.gto.ecp import core_configuration

    if number in OPEN_D:
        raise ValueError(f"the free atom of {SYMBOLS[number]} has an open d or f shell")
    up, down = dict.fromkeys(sum(_ORBITALS.values(), ()), 0), {}
    down |= up
    left = number
    for shell in _SHELLS:
        places = _ORBITALS[shell]
        here = min(left, 2 * len(places))
        for spin, count in ((up, min(here, len(places))), (down, max(here - len(places), 0))):
            for name in places[:count]:
                spin[name] += 1
        left -= here
    for kind, filled in zip("spdf", core_configuration(core), strict=True):
        for name in _ORBITALS[kind]:
            up[name], down[name] = up[name] - filled, down[name] - filled
    return {name: (up[name], down[name]) for name in up}


def multiplicity(number: int) -> int:
    """2S + 1 of an element's free atom, by its atomic number; see `occupation`."""
    return 1 + sum(a - b for a, b in occupation(number).values())


@functools.cache
def free_atom_energy(number: int, level: Settings) -> float:
    """The energy of an element's free atom in Hartree, to DECIMALS digits.

    Args:
        number: atomic number, 1 to 86, not one of OPEN_D.
        level: basis, functional, grid level, cartesian functions or not.

    Raises:
        RuntimeError: PySCF did not converge.
        ValueError: there are no such functions, or the element has an open d shell.
    """
    from pyscf import gto, lib

    from pyscf_ipu.elements.basis_sets import core_electrons, pyscf_basis, pyscf_ecp
    from pyscf_ipu.elements.cartesian import pyscf_cart

    with lib.with_omp_threads(1):
        mole = gto.M(
            atom=[(number, (0.0, 0.0, 0.0))],
            basis=pyscf_basis(level.basis, [number]),
            ecp=pyscf_ecp(level.basis, [number]),
            spin=multiplicity(number) - 1,
            cart=pyscf_cart(level.cart),
            symmetry="D2h",
            verbose=0,
        )
        field: MeanField = level.pyscf_method(mole, unrestricted=True)
        wanted = occupation(number, core_electrons(level.basis, number)).items()
        field.irrep_nelec = {name: n for name, n in wanted if name in (mole.irrep_name or ())}
        field = converged(field)
    if not field.converged:
        raise RuntimeError(f"the free atom of {SYMBOLS[number]} did not converge")
    return round(float(field.e_tot), DECIMALS)


class FreeAtoms:
    """The free atoms of a run, computed in a thread while the run begins::

    atoms = FreeAtoms(level, [1, 6, 8], {})
    ...
    atoms.energies  # waits for what is missing
    """

    def __init__(self, level: Settings, numbers: Iterable[int], known: Mapping[str, float]) -> None:
        """Begin with the atoms of some atomic numbers whose energies are not known (by symbol).

        Those of OPEN_D are left out.
        """
        self._known = dict(known)
        self._coming: dict[str, Future[float]] = {}
        self.problems: dict[str, str] = {}
        """By symbol, why PySCF gave no energy; known when `energies` is."""
        missing = [z for z in numbers if SYMBOLS[z] not in known and z not in OPEN_D]
        if missing:
            _import_pyscf()
            pool = ThreadPoolExecutor(1, "free-atoms")
            of_atoms = replace(level, precision="float64", fixed_cycles=0, history=False)
            self._coming = {SYMBOLS[z]: pool.submit(free_atom_energy, z, of_atoms) for z in missing}
            pool.shutdown(wait=False)

    @functools.cached_property
    def energies(self) -> dict[str, float]:
        """The energies in Hartree by symbol, without those that PySCF could not compute."""
        energies = dict(self._known)
        for symbol, energy in self._coming.items():
            try:
                energies[symbol] = energy.result()
            except Exception as error:  # of PySCF: one atom must not end a run
                self.problems[symbol] = " ".join(f"{type(error).__name__}: {error}".split())
        return energies

    def stop(self) -> None:
        """Begin no further atom."""
        for energy in self._coming.values():
            energy.cancel()


def _import_pyscf() -> None:
    """Import PySCF before a thread does.

    Its modules import each other in circles: where two threads import them at a time, Python lets
    each see the other's half-finished ones, and both may end in an ImportError.
    """
    for module in ("dft", "gto", "lib", "scf", "scf.atom_hf", "soscf", "symm"):
        importlib.import_module(f"pyscf.{module}")


def disagreements(energies: Mapping[str, float], level: Settings) -> list[str]:
    """Where energies in a manifest (Hartree, by symbol) are not what PySCF gives here, in words."""
    atoms = FreeAtoms(level, [ATOMIC_NUMBERS[symbol] for symbol in energies], {})
    here = atoms.energies
    return [
        f"{symbol} is {here.get(symbol, float('nan')):.6f} hartree, the manifest has {energy:.6f}"
        for symbol, energy in energies.items()
        if not abs(here.get(symbol, float("nan")) - energy) <= TOLERANCE_HARTREE
    ]
