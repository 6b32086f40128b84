"""The part of a result that analyses its density and its forces, on the host in float64.

Charges and bond orders divide the density between atoms by their AOs, so they depend on the basis.
Literature: P.-O. Löwdin, J. Chem. Phys. 18, 365 (1950), doi:10.1063/1.1747632; I. Mayer, Chem.
Phys. Lett. 97, 270 (1983), doi:10.1016/0009-2614(83)80005-0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.molecule import balance
from pyscf_ipu.results.entries import Values, entries, is_list
from pyscf_ipu.results.keepable import Keepable
from pyscf_ipu.results.orbital_files import functions_of, mole_of

if TYPE_CHECKING:
    from pyscf.gto import Mole

Analysis = np.ndarray | list[np.ndarray]
"""An array of one molecule, or one for every molecule of a list."""


class PartitionedDensity:
    """The density of one molecule, its AOs, and the atom that each AO belongs to."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.mole: Mole = mole_of(values["molecule"], values["settings"])
        self.functions = functions_of(self.mole, values["settings"])
        """The AOs of the result in terms of PySCF's: [N of PySCF, N]."""
        self.overlap = self._among_functions(self.mole.intor("int1e_ovlp"))
        self.density: np.ndarray = values["density_matrix"]
        first, last = self.mole.aoslice_by_atom()[:, 2:].T
        of_pyscf = np.repeat(np.arange(self.mole.natm), last - first)
        atom_of_ao = of_pyscf[np.abs(self.functions).argmax(axis=0)]
        self.on_atom = np.equal.outer(np.arange(self.mole.natm), atom_of_ao).astype(np.float64)
        """[A, N] 1 where the AO is on the atom."""
        self.core_charges = self.mole.atom_charges().astype(np.float64)
        """[A] Of the nuclei, less the electrons of a core potential, which no AO holds."""

    def _among_functions(self, integrals: np.ndarray) -> np.ndarray:
        """[..., N, N] Integrals of PySCF's AOs between those of the result."""
        return self.functions.T @ integrals @ self.functions

    def charges_lowdin(self) -> Float[np.ndarray, " A"]:
        """Charges in e, with AOs made orthonormal by S^-1/2."""
        weights, vectors = np.linalg.eigh(self.overlap)
        root = (vectors * np.sqrt(np.clip(weights, 0, None))) @ vectors.T
        return self.core_charges - self.on_atom @ (root @ self.density * root).sum(axis=1)

    def bond_orders(self) -> Float[np.ndarray, "A A"]:
        """Mayer's bond orders of pairs of atoms; zero on the diagonal."""
        shares = self.density @ self.overlap
        orders = self.on_atom @ (shares * shares.T) @ self.on_atom.T
        np.fill_diagonal(orders, 0.0)
        return (orders + orders.T) / 2

    def quadrupole(self) -> Float[np.ndarray, "3 3"]:
        """Second moments of the charge in e Bohr^2, about the origin of the coordinates.

        They are computed about the centre of the nuclei: far from the origin, a small error in the
        number of electrons would make a large one.  The dipole moves them to the origin.
        """
        mol = self.values["molecule"]
        centre = mol.positions.mean(axis=0)
        with self.mole.with_common_origin(centre):
            integrals = self.mole.intor("int1e_rr").reshape(9, self.mole.nao, self.mole.nao)
        electrons = np.einsum("xij,ji->x", self._among_functions(integrals), self.density)
        arms = mol.positions - centre
        inner = (arms * self.core_charges[:, None]).T @ arms - electrons.reshape(3, 3)
        dipole = self.values["dipole"] - mol.charge * centre
        moved = np.outer(centre, dipole) + np.outer(dipole, centre)
        total = inner + moved + mol.charge * np.outer(centre, centre)
        return (total + total.T) / 2


class Analysed(Keepable):
    """The base of a result dataclass, of one molecule or of a list: what follows from its fields.

    Each is an array, or a list of arrays for a list of molecules.  Those of the density are NaN
    where the Mulliken charges are.
    """

    @property
    def charges_lowdin(self) -> Analysis:
        """[A] Löwdin's charges, e, in the order of the atoms.  They need `orbitals=True`."""
        return self._of_density(PartitionedDensity.charges_lowdin, lambda n: (n,))

    @property
    def bond_orders(self) -> Analysis:
        """[A, A] Mayer's bond orders: symmetric, with a diagonal of zeros, so that a row adds up to
        the valence of its atom.  They need `orbitals=True`."""
        return self._of_density(PartitionedDensity.bond_orders, lambda n: (n, n))

    @property
    def quadrupole(self) -> Analysis:
        """[3, 3] Second moments of nuclei and electrons, e Bohr^2, about the origin of the
        coordinates, not traceless.  They need `orbitals=True`."""
        return self._of_density(PartitionedDensity.quadrupole, lambda n: (3, 3))

    @property
    def net_force(self) -> Analysis:
        """[3] The sum of the forces, Hartree/Bohr: zero but for errors.  Needs `forces=True`."""
        return self._each(lambda one: balance.net_force(_forces(one)))

    @property
    def torque(self) -> Analysis:
        """[3] The moment of the forces about the mean position of the nuclei, Hartree: zero but for
        errors.  Needs `forces=True`."""
        return self._each(_torque)

    @cached_property
    def _densities(self) -> list[PartitionedDensity | None]:
        """The density of each molecule; None where there is none."""
        return [_partitioned(one) for one in entries(self._values())]

    def _of_density(
        self,
        of: Callable[[PartitionedDensity], np.ndarray],
        shape: Callable[[int], tuple[int, ...]],
    ) -> Analysis:
        densities = iter(self._densities)

        def value(one: Values) -> np.ndarray:
            density = next(densities)
            nothing = np.full(shape(len(one["mulliken_charges"])), np.nan)
            return nothing if density is None else of(density)

        return self._each(value)

    def _each(self, of: Callable[[Values], np.ndarray]) -> Analysis:
        """The value of each molecule; of a single one without the list around it."""
        values = self._values()
        each = [of(one) for one in entries(values)]
        return each if is_list(values) else each[0]


def _partitioned(values: Values) -> PartitionedDensity | None:
    """The density of one molecule, if it was computed; raises UsageError if it was not kept."""
    if values["density_matrix"] is None:
        raise UsageError("this result has no density: compute it with rks(..., orbitals=True)")
    usable = values["settings"] is not None and np.isfinite(values["mulliken_charges"]).all()
    return PartitionedDensity(values) if usable else None


def _forces(values: Values) -> np.ndarray:
    """The forces of one molecule; raises UsageError if there are none."""
    if values["forces"] is None:
        raise UsageError("this result has no forces: compute it with rks(..., forces=True)")
    return values["forces"]


def _torque(values: Values) -> np.ndarray:
    forces, mol = _forces(values), values["molecule"]
    return np.full(3, np.nan) if mol is None else balance.torque(mol.positions, forces)
