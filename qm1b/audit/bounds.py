"""The largest errors that a dataset may have: options of `qm1b verify`, and their usual values."""

from dataclasses import dataclass

from pyscf_ipu.settings import Settings


@dataclass(frozen=True)
class Bounds:
    """Bounds of an audit; those not given are those of the level of theory."""

    energy_mae_mev: float | None = None
    """Bound on the mean absolute error of the energy, in meV."""
    energy_max_mev: float | None = None
    """Bound on the largest error of the energy, in meV."""
    gap_mae_mev: float | None = None
    """Bound on the mean absolute error of the gap, in meV."""
    dipole_max_e_bohr: float | None = None
    """Bound on the largest error of the dipole moment, in e bohr."""
    charge_max_e: float | None = None
    """Bound on the largest error of an atom's Mulliken charge, in e."""
    # The next four find an error that HOMO and LUMO share, which the gap does not show.
    homo_mae_mev: float | None = None
    """Bound on the mean absolute error of the HOMO, in meV."""
    homo_max_mev: float | None = None
    """Bound on the largest error of the HOMO, in meV."""
    lumo_mae_mev: float | None = None
    """Bound on the mean absolute error of the LUMO, in meV."""
    lumo_max_mev: float | None = None
    """Bound on the largest error of the LUMO, in meV."""
    force_max_mev_angstrom: float | None = None
    """Bound on the largest error of a component of the forces, in meV/Angstrom."""
    higher_percent: float | None = None
    """Bound on the rows in a higher SCF state than PySCF's, in percent of the sample."""
    lower_percent: float | None = None
    """Bound on the rows below PySCF's energy, in percent of the sample; it holds for the outliers
    too."""
    not_compared_percent: float | None = None
    """Bound on the rows for which PySCF failed or did not converge, in percent of all recomputed
    rows."""


def default_bounds(level: Settings) -> Bounds:
    """The accuracy that the project promises for a level of theory (docs/running.md)."""
    # Mean and largest errors in meV.
    energy = orbitals = (1.0 if level.basis.lower() == "sto-3g" else 3.0, 5.0)
    gap_mae = 0.1
    if level.precision == "mixed":
        energy = (0.01, 0.1)  # the orbital energies are those of float32
    if level.precision == "float64":
        energy, orbitals, gap_mae = (3e-3, 3e-3), (0.06, 0.6), 0.06
    return Bounds(
        energy_mae_mev=energy[0],
        energy_max_mev=energy[1],
        gap_mae_mev=gap_mae,
        dipole_max_e_bohr=1e-3,
        charge_max_e=1e-3,
        homo_mae_mev=orbitals[0],
        homo_max_mev=orbitals[1],
        lumo_mae_mev=orbitals[0],
        lumo_max_mev=orbitals[1],
        force_max_mev_angstrom=0.1 if level.precision == "float64" else 5.0,
        higher_percent=0.5,
        lower_percent=0.5,
        not_compared_percent=5.0,
    )
