"""Rows compared with their references: differences, statistics, and bounds for both."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from pyscf_ipu.base.units import FORCE_TO_MEV_PER_ANGSTROM, HARTREE_TO_EV
from qm1b.audit.bounds import Bounds
from qm1b.audit.picking import Picked
from qm1b.audit.turning import Turned
from qm1b.reference.recompute import Reference

MEV = 1e3 * HARTREE_TO_EV
OTHER_STATE_MEV = 10.0
"""A difference in energy above this is no rounding error: the SCF solutions differ."""

QUANTITIES = (
    *("energy_mev", "homo_mev", "lumo_mev", "gap_mev"),
    *("dipole_e_bohr", "charge_e", "force_mev_angstrom"),
)
PERCENTILES = (50, 90, 95, 99)

SAME, LOWER, HIGHER, NOT_COMPARED = "same", "lower", "higher", "not compared"

WHY = {
    "lower_percent": (
        " (PySCF's energy is a minimum: a row below it is wrong, or PySCF missed a lower state)"
    ),
    "not_compared_percent": " (PySCF did not converge, or failed, for these)",
}
"""Explanations that the messages of these bounds need."""


@dataclass(frozen=True)
class Compared:
    """Differences of a row, dataset minus PySCF."""

    line: int
    conformer: int
    id: str
    smiles: str
    energy_mev: float
    homo_mev: float
    lumo_mev: float
    gap_mev: float
    dipole_e_bohr: float
    """Norm of the difference."""
    charge_e: float
    """The largest difference among the atoms."""
    force_mev_angstrom: float | None
    """The largest difference among the components, in meV/Angstrom; None without forces."""
    state: str
    """Same as PySCF's, lower or higher; or not compared, if PySCF has not converged or failed."""
    deviation_ev: float
    """Energy of a suspect minus the median of its molecule's; else 0."""
    seconds: float
    """PySCF's time."""
    problem: str = ""
    """Why PySCF failed, if it did."""


def compare(picked: Picked, reference: Reference) -> Compared:
    """A row minus its reference."""
    row = picked.row
    force = None
    if reference.forces is not None and "forces" in row:
        force = FORCE_TO_MEV_PER_ANGSTROM * float(
            np.abs(row["forces"] - np.array(reference.forces)).max()
        )
    energy = MEV * (row["energy"] - reference.energy)
    homo, lumo = MEV * (row["homo"] - reference.homo), MEV * (row["lumo"] - reference.lumo)
    state = SAME if abs(energy) < OTHER_STATE_MEV else LOWER if energy < 0 else HIGHER
    return Compared(
        line=row["line"],
        conformer=row["conformer"],
        id=row.get("id", ""),
        smiles=row["smiles"],
        energy_mev=energy,
        homo_mev=homo,
        lumo_mev=lumo,
        gap_mev=lumo - homo,
        dipole_e_bohr=float(np.linalg.norm(np.subtract(row["dipole"], reference.dipole))),
        charge_e=float(
            np.abs(row["mulliken_charges"] - np.array(reference.mulliken_charges)).max()
        ),
        force_mev_angstrom=force,
        state=state if reference.converged else NOT_COMPARED,
        deviation_ev=picked.deviation_ev,
        seconds=reference.seconds,
        problem=reference.problem,
    )


def summarise(rows: Sequence[Compared]) -> dict[str, dict[str, int | float]]:
    """Errors of each quantity over the rows in PySCF's state.

    These are the mean absolute error, the bias, and percentiles and maximum of the absolute error.
    Missing LUMOs are ignored; a quantity without values is left out.
    """
    errors: dict[str, dict[str, int | float]] = {}
    for name in QUANTITIES:
        values = np.array([getattr(row, name) for row in rows if row.state == SAME], np.float64)
        values = values[np.isfinite(values)]
        if not values.size:
            continue
        errors[name] = statistics(values)
    return errors


def statistics(values: np.ndarray) -> dict[str, int | float]:
    """Count, mean absolute error, bias, and percentiles and maximum of the absolute error."""
    size = np.abs(values)
    percentiles = np.percentile(size, PERCENTILES)
    return {
        "count": int(values.size),
        "mae": float(size.mean()),
        "bias": float(values.mean()),
        **{f"p{p}": float(v) for p, v in zip(PERCENTILES, percentiles, strict=True)},
        "max": float(size.max()),
    }


def turning(rows: Sequence[Turned]) -> dict[str, dict[str, int | float]]:
    """Statistics of the noise of the grid; a quantity without values is left out."""
    names = ("energy_mev", "force_mev_angstrom")
    noise = {n: np.array([getattr(row, n) for row in rows], np.float64) for n in names}
    return {n: statistics(values) for n, values in noise.items() if np.isfinite(values).any()}


def states(rows: Sequence[Compared]) -> dict[str, int]:
    """The number of rows in each state."""
    return {s: sum(row.state == s for row in rows) for s in (SAME, LOWER, HIGHER, NOT_COMPARED)}


def percent(rows: Sequence[Compared], state: str) -> float | None:
    """The percentage of rows in a state; None if there are no rows."""
    return 100 * states(rows)[state] / len(rows) if rows else None


def missed(sample: Sequence[Compared], suspects: Sequence[Compared], bounds: Bounds) -> list[str]:
    """The bounds that are exceeded, in words.

    Means are over the random sample alone, because suspects were chosen for being bad. Maxima and
    states are over both.
    """
    mean, every = summarise(sample), summarise([*sample, *suspects])
    figures: dict[str, float | None] = {}
    for statistic, errors in (("mae", mean), ("max", every)):
        for quantity, values in errors.items():
            figures[quantity.replace("_", f"_{statistic}_", 1)] = values[statistic]
    figures["higher_percent"] = percent(sample, HIGHER)
    figures["lower_percent"] = percent(sample, LOWER)
    figures["not_compared_percent"] = percent([*sample, *suspects], NOT_COMPARED)
    limits = asdict(bounds)
    sentences = [
        f"{name} is {value:.3g}, the bound is {limits[name]:g}{WHY.get(name, '')}"
        for name, value in figures.items()
        if name in limits and value is not None and value > limits[name]
    ]
    bad = states(suspects)
    if bad[HIGHER]:
        sentences.append(
            f"{bad[HIGHER]} of {len(suspects)} suspects are in a higher state than PySCF's"
        )
    if (percent(suspects, LOWER) or 0.0) > limits["lower_percent"]:
        below = f"{bad[LOWER]} of {len(suspects)} suspects are below PySCF's energy"
        sentences.append(below + WHY["lower_percent"])
    if not sample:
        sentences.append("there is no converged row to recompute")
    elif not mean:
        sentences.append("no row of the sample could be compared")
    return sentences


def worst(rows: Sequence[Compared], name: str, count: int) -> list[Compared]:
    """The rows with the largest errors of a quantity, the largest first."""
    finite = [row for row in rows if np.isfinite(np.float64(getattr(row, name)))]
    return sorted(finite, key=lambda row: -abs(getattr(row, name)))[:count]
