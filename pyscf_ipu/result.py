"""Results on the host: NumPy arrays in float64, atoms and AOs in the order the user gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Values = Any  # an array [B], or the NumPy scalar of a single molecule

TERM_NAMES = (
    "kinetic",
    "nuclear_attraction",
    "electron_repulsion",
    "exchange_correlation",
    "nuclear_repulsion",
)


@dataclass(frozen=True)
class RKSResult:
    """One molecule (scalars), or a list of B molecules (leading axis B, in the order given).

    energy           Hartree; NaN where the status is not a result.
    homo, lumo, gap  Hartree; lumo and gap are NaN where there is no empty orbital.
    dipole           [3] or [B, 3], e Bohr, about the origin of the coordinates.
    converged        whether energy and commutator met the precision's thresholds (in float32 a
                     commutator that has stopped shrinking counts below 2e-4 Hartree).
    cycles           SCF cycles used.
    commutator_norm  largest element of the last commutator [F, D], Hartree.
    energy_std       standard deviation of the last five cycle energies, Hartree.
    mulliken_charges e, [A] in the order of the atoms; for a list a sequence of [A_b].
    energy_terms     parts of the energy, Hartree, by name.
    status           "converged", "not_converged", "nan" or "invalid: ...".
    mo_energy        Hartree, [N] ascending; for a list a sequence of [N_b].
    mo_coeff, density_matrix  [N, N] in PySCF's AO order if asked for (orbitals=True), else None.
    forces           -dE/dR, Hartree/Bohr, [A, 3] if asked for (forces=True), else None; NaN unless
                     the status is "converged".
    """

    energy: Values
    homo: Values
    lumo: Values
    gap: Values
    dipole: np.ndarray
    converged: Values
    cycles: Values
    commutator_norm: Values
    energy_std: Values
    energy_terms: dict[str, Values]
    status: list[str] | str
    mo_energy: Sequence[np.ndarray] | np.ndarray
    mulliken_charges: Sequence[np.ndarray] | np.ndarray
    mo_coeff: Sequence[np.ndarray] | np.ndarray | None = None
    density_matrix: Sequence[np.ndarray] | np.ndarray | None = None
    forces: Sequence[np.ndarray] | np.ndarray | None = None


@dataclass(frozen=True)
class Row:
    """One molecule of a result, before rows are put together."""

    energy: float
    homo: float
    lumo: float
    dipole: np.ndarray
    converged: bool
    cycles: int
    commutator_norm: float
    energy_std: float
    terms: tuple[float, ...]
    status: str
    mo_energy: np.ndarray
    mulliken_charges: np.ndarray
    mo_coeff: np.ndarray | None = None
    density_matrix: np.ndarray | None = None
    forces: np.ndarray | None = None


def invalid_row(reason: str, n_atoms: int = 0) -> Row:
    """The row of a molecule that was not computed."""
    nan = float("nan")
    none = np.zeros(0)
    terms = (nan,) * len(TERM_NAMES)
    return Row(
        nan, nan, nan, np.full(3, nan), False, 0, nan, nan, terms, f"invalid: {reason}", none,
        np.full(n_atoms, nan), np.zeros((0, 0)), np.zeros((0, 0)), np.full((n_atoms, 3), nan),
    )  # fmt: skip


def stack_rows(rows: Sequence[Row], orbitals: bool, forces: bool = False) -> RKSResult:
    """Rows as one result with a leading axis B."""

    def column(name: str, dtype: type = np.float64) -> np.ndarray:
        return np.array([getattr(row, name) for row in rows], dtype)

    homo, lumo = column("homo"), column("lumo")
    terms = np.array([row.terms for row in rows]).reshape(len(rows), len(TERM_NAMES))

    def matrices(name: str, wanted: bool) -> list[np.ndarray] | None:
        return [getattr(row, name) for row in rows] if wanted else None

    return RKSResult(
        energy=column("energy"),
        homo=homo,
        lumo=lumo,
        gap=lumo - homo,
        dipole=column("dipole").reshape(len(rows), 3),
        converged=column("converged", bool),
        cycles=column("cycles", np.int64),
        commutator_norm=column("commutator_norm"),
        energy_std=column("energy_std"),
        energy_terms={name: terms[:, i] for i, name in enumerate(TERM_NAMES)},
        status=[row.status for row in rows],
        mo_energy=[row.mo_energy for row in rows],
        mulliken_charges=[row.mulliken_charges for row in rows],
        mo_coeff=matrices("mo_coeff", orbitals),
        density_matrix=matrices("density_matrix", orbitals),
        forces=matrices("forces", forces),
    )


def unstack(result: RKSResult) -> list[Row]:
    """The rows of a result with a leading axis B."""

    def entry(column: Sequence[np.ndarray] | np.ndarray | None, b: int) -> np.ndarray | None:
        return None if column is None else column[b]

    return [
        Row(
            energy=float(result.energy[b]),
            homo=float(result.homo[b]),
            lumo=float(result.lumo[b]),
            dipole=result.dipole[b],
            converged=bool(result.converged[b]),
            cycles=int(result.cycles[b]),
            commutator_norm=float(result.commutator_norm[b]),
            energy_std=float(result.energy_std[b]),
            terms=tuple(float(result.energy_terms[name][b]) for name in TERM_NAMES),
            status=result.status[b],
            mo_energy=result.mo_energy[b],
            mulliken_charges=result.mulliken_charges[b],
            mo_coeff=entry(result.mo_coeff, b),
            density_matrix=entry(result.density_matrix, b),
            forces=entry(result.forces, b),
        )
        for b in range(len(result.energy))
    ]


def single(result: RKSResult) -> RKSResult:
    """The result of a list of one, as scalars."""
    values = {}
    for name, value in vars(result).items():
        if isinstance(value, dict):
            values[name] = {key: column[0] for key, column in value.items()}
        else:
            values[name] = None if value is None else value[0]
    return RKSResult(**values)
