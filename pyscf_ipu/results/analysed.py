"""The part of a result that analyses its density, on the host in float64.

Charges and bond orders divide the density between atoms by their AOs, so they depend on the basis.
Literature: P.-O. Löwdin, J. Chem. Phys. 18, 365 (1950), doi:10.1063/1.1747632; I. Mayer, Chem.
Phys. Lett. 97, 270 (1983), doi:10.1016/0009-2614(83)80005-0.
"""

from functools import cached_property

import numpy as np

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.elements.mixed import functions_of
from pyscf_ipu.results.entries import Values, entries, is_list
from pyscf_ipu.results.keepable import Keepable
from pyscf_ipu.results.orbital_files import mole_of

Analysis = np.ndarray | list[np.ndarray]
"""An array of one molecule, or one for every molecule of a list."""


class Analysed(Keepable):
    """The base of a result dataclass, of one molecule or of a list: what follows from a density.

    Each needs `orbitals=True`, is a list of arrays for a list of molecules, and NaN where the
    Mulliken charges are.
    """

    @property
    def charges_lowdin(self) -> Analysis:
        """[A] Löwdin's charges, e, in the order of the atoms."""
        return self._each("charges_lowdin")

    @property
    def spin_populations_lowdin(self) -> Analysis:
        """[A] Löwdin's alpha less beta electrons on every atom; zeros of closed shells."""
        return self._each("spin_populations_lowdin")

    @property
    def bond_orders(self) -> Analysis:
        """[A, A] Mayer's bond orders: symmetric, with a diagonal of zeros, so that a row adds up to
        the valence of its atom."""
        return self._each("bond_orders")

    @property
    def quadrupole(self) -> Analysis:
        """[3, 3] Second moments of nuclei and electrons, e Bohr^2, about the origin of the
        coordinates, not traceless."""
        return self._each("quadrupole")

    def _each(self, name: str) -> Analysis:
        values = [one[name] for one in self._analyses]
        return values if is_list(self._values()) else values[0]

    @cached_property
    def _analyses(self) -> list[dict[str, np.ndarray]]:
        return [_analysis(one) for one in entries(self._values())]


def _analysis(values: Values) -> dict[str, np.ndarray]:
    """All of one molecule, by name; raises UsageError if its density was not kept."""
    density, mol = values["density_matrix"], values["molecule"]
    if density is None:
        raise UsageError("this result has no density: compute it with rks(..., orbitals=True)")
    n = len(values["mulliken_charges"])
    if values["settings"] is None or not np.isfinite(values["mulliken_charges"]).all():
        shapes = {"charges_lowdin": (n,), "bond_orders": (n, n), "quadrupole": (3, 3)}
        shapes["spin_populations_lowdin"] = (n,)
        return {name: np.full(shape, np.nan) for name, shape in shapes.items()}
    mole = mole_of(mol, values["settings"])
    functions = functions_of(mole, values["settings"].cart)
    first, last = mole.aoslice_by_atom()[:, 2:].T
    atom = np.repeat(np.arange(n), last - first)[np.abs(functions).argmax(axis=0)]
    on_atom = np.equal.outer(np.arange(n), atom).astype(np.float64)
    # Of the nuclei, less the electrons of a core potential, which no AO holds.
    charges = mole.atom_charges().astype(np.float64)
    overlap = functions.T @ mole.intor("int1e_ovlp") @ functions
    weights, vectors = np.linalg.eigh(overlap)
    root = (vectors * np.sqrt(np.clip(weights, 0, None))) @ vectors.T
    spins = density if density.ndim == 3 else np.stack([density, density]) / 2
    density, spin_density = spins.sum(axis=0), spins[0] - spins[1]
    shares = spins @ overlap
    orders = 2.0 * on_atom @ (shares * shares.swapaxes(1, 2)).sum(axis=0) @ on_atom.T
    np.fill_diagonal(orders, 0.0)
    # About the centre: far from the origin, a small error in the number of electrons would make a
    # large one of second moments. The dipole moves them to the origin.
    centre = mol.positions.mean(axis=0)
    with mole.with_common_origin(centre):
        moments = mole.intor("int1e_rr").reshape(3, 3, mole.nao, mole.nao)
    arms, dipole = mol.positions - centre, values["dipole"] - mol.charge * centre
    second = (arms * charges[:, None]).T @ arms
    second -= np.einsum("xyij,ij->xy", moments, functions @ density @ functions.T)
    second += np.outer(centre, dipole) + np.outer(dipole, centre)
    second += mol.charge * np.outer(centre, centre)
    return {
        "charges_lowdin": charges - on_atom @ (root @ density * root).sum(axis=1),
        "spin_populations_lowdin": on_atom @ (root @ spin_density * root).sum(axis=1),
        "bond_orders": (orders + orders.T) / 2,
        "quadrupole": (second + second.T) / 2,
    }
