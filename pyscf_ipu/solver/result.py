"""Results on the host: NumPy arrays in float64, atoms and AOs in the order the user gave."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from jaxtyping import PyTree

from pyscf_ipu.scf.hamiltonian import EnergyTerms

Number = TypeVar("Number")
Whole = TypeVar("Whole")
Truth = TypeVar("Truth")
Rows = TypeVar("Rows")
Text = TypeVar("Text")

ILL_CONDITIONED = "ill_conditioned"
TERM_NAMES: tuple[str, ...] = EnergyTerms._fields
NUMBERS = (
    "energy",
    "homo",
    "lumo",
    "gap",
    "commutator_norm",
    "energy_std",
    "overlap_smallest",
)


@dataclass(frozen=True)
class RKSResult(Generic[Number, Whole, Truth, Rows, Text]):
    """One molecule (scalars), or a list of B molecules (leading axis B, in the order given).

    What has another length for every molecule is a sequence of B arrays for a list.
    """

    energy: Number
    """Hartree; NaN where the status is not a result."""
    homo: Number
    """Hartree."""
    lumo: Number
    """Hartree; NaN where there is no empty orbital."""
    gap: Number
    """Hartree; NaN where there is no empty orbital."""
    dipole: np.ndarray
    """[3] or [B, 3], e Bohr, about the origin of the coordinates."""
    converged: Truth
    """Whether energy and commutator met the precision's thresholds (in float32 a commutator that
    has stopped shrinking counts below 2e-4 Hartree), and the precision can hold the basis."""
    cycles: Whole
    """SCF cycles used; in "mixed" those in float64 where it needed them."""
    commutator_norm: Number
    """Largest element of the last commutator [F, D], Hartree."""
    energy_std: Number
    """Standard deviation of the last five cycle energies, Hartree."""
    overlap_smallest: Number
    """Smallest eigenvalue of the overlap matrix, without unit; in float32 to about 1e-6."""
    n_dropped: Whole
    """Eigenvectors of the overlap matrix that were left out, with eigenvalues up to 1e-6 (float64
    and mixed)."""
    energy_terms: dict[str, Number]
    """Parts of the energy, Hartree, by name."""
    status: Text
    """"converged", "not_converged", "ill_conditioned", "nan" or "invalid: ...".

    Ill-conditioned: the AOs are too nearly dependent for the precision; the numbers are wrong."""
    mo_energy: Rows
    """[N] Hartree, ascending; [N - n_dropped] where vectors were left out, as in PySCF."""
    mulliken_charges: Rows
    """[A] e, in the order of the atoms."""
    mo_coeff: Rows | None = None
    """[N, N - n_dropped] in PySCF's AO order if asked for (orbitals=True), else None."""
    density_matrix: Rows | None = None
    """[N, N] in PySCF's AO order if asked for (orbitals=True), else None."""
    forces: Rows | None = None
    """[A, 3] -dE/dR in Hartree/Bohr if asked for (forces=True), else None; NaN unless the status
    is "converged"."""


class MoleculeResult(RKSResult[float, np.int64, np.bool_, np.ndarray, str]):
    """The result of a single molecule: the fields of `RKSResult` without an axis B."""


def status_of(converged: bool, held: bool, finite: bool) -> str:
    """The status of a molecule that was computed.

    Args:
        converged: nothing is wrong.
        held: the precision can hold the basis; see `Precision.holds`.
        finite: all numbers are.
    """
    if converged:
        return "converged"
    if not finite:
        return "nan"
    return "not_converged" if held else ILL_CONDITIONED


def invalid(reason: str, n_atoms: int) -> MoleculeResult:
    """The result of a molecule that was not computed; NaN in every number."""
    nan, nothing = np.float64("nan"), np.zeros((0, 0))
    return MoleculeResult(
        **dict.fromkeys(NUMBERS, nan),
        dipole=np.full(3, nan),
        converged=np.bool_(False),
        cycles=np.int64(0),
        n_dropped=np.int64(0),
        energy_terms=dict.fromkeys(TERM_NAMES, nan),
        status=f"invalid: {reason}",
        mo_energy=np.zeros(0),
        mulliken_charges=np.full(n_atoms, nan),
        mo_coeff=nothing,
        density_matrix=nothing,
        forces=np.full((n_atoms, 3), nan),
    )


def stacked(
    results: Sequence[MoleculeResult], orbitals: bool = False, forces: bool = False
) -> RKSResult:
    """Results of single molecules as one, with a leading axis B; B may be 0."""

    def column(name: str, dtype: type = np.float64) -> np.ndarray:
        return np.array([getattr(one, name) for one in results], dtype)

    rows = ["status", "mo_energy", "mulliken_charges"]
    rows += ["mo_coeff", "density_matrix"] * orbitals + ["forces"] * forces
    fields: dict[str, PyTree] = {name: [getattr(one, name) for one in results] for name in rows}
    fields |= {name: column(name) for name in NUMBERS}
    terms = np.array([[one.energy_terms[name] for name in TERM_NAMES] for one in results])
    terms = terms.reshape(len(results), len(TERM_NAMES))
    return RKSResult(
        **fields,
        dipole=column("dipole").reshape(len(results), 3),
        converged=column("converged", bool),
        cycles=column("cycles", np.int64),
        n_dropped=column("n_dropped", np.int64),
        energy_terms={name: terms[:, i] for i, name in enumerate(TERM_NAMES)},
    )
