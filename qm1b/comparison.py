"""Rows beside their references: differences, statistics, and the bounds that they have to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from pyscf_ipu.units import HARTREE_TO_EV

from .picking import Picked
from .presets import Level
from .reference import Reference

MEV = 1e3 * HARTREE_TO_EV
OTHER_STATE_MEV = 10.0
"""An energy farther off than any rounding error belongs to another SCF solution."""

QUANTITIES = ("energy_mev", "homo_mev", "lumo_mev", "gap_mev", "dipole_e_bohr", "charge_e")
PERCENTILES = (50, 90, 95, 99)

SAME, LOWER, HIGHER, NOT_COMPARED = "same", "lower", "higher", "not compared"

WHY = {
    "lower_percent": (
        " (PySCF's energy is a minimum: a row below it is wrong, unless there is a lower minimum)"
    ),
    "not_compared_percent": " (PySCF did not converge, or failed, for these)",
}
"""What has to be known to read a figure."""


@dataclass(frozen=True)
class Compared:
    """Differences of a row, the dataset minus PySCF; the dipole's is the norm of a vector, the
    charge's the largest among the atoms."""

    line: int
    conformer: int
    smiles: str
    energy_mev: float
    homo_mev: float
    lumo_mev: float
    gap_mev: float
    dipole_e_bohr: float
    charge_e: float
    state: str
    """Same as PySCF's; lower or higher than PySCF's; or not compared: PySCF has not converged, or
    has failed."""
    deviation_ev: float
    """Of a suspect: its energy minus the median of its molecule's; else 0."""
    seconds: float
    """That PySCF took."""
    problem: str = ""
    """Why PySCF failed, if it did."""


@dataclass(frozen=True)
class Bounds:
    """What a sample has to keep."""

    energy_mae_mev: float
    energy_max_mev: float
    gap_mae_mev: float
    dipole_max_e_bohr: float
    charge_max_e: float
    homo_mae_mev: float
    """With the next three: an error that HOMO and LUMO share does not show in the gap."""
    homo_max_mev: float
    lumo_mae_mev: float
    lumo_max_mev: float
    higher_percent: float = 0.5
    """Rows in a higher state than PySCF's."""
    lower_percent: float = 0.5
    """Rows below PySCF's energy; of the suspects too."""
    not_compared_percent: float = 5.0
    """Rows for which there is no reference, suspects included."""


def default_bounds(level: Level) -> Bounds:
    """The accuracy that the project promises for a level of theory (README, Results)."""
    if level.precision == "float64":
        return _bounds((3e-3, 3e-3), 0.06, orbitals=(0.06, 0.6))
    mae = 1.0 if level.basis.lower() == "sto-3g" else 3.0
    # mixed: the orbital energies are float32's, only the total energy is not
    energy = (0.01, 0.1) if level.precision == "mixed" else (mae, 5.0)
    return _bounds(energy, 0.1, orbitals=(mae, 5.0))


def _bounds(
    energy: tuple[float, float], gap_mae_mev: float, orbitals: tuple[float, float]
) -> Bounds:
    """Mean and largest errors of the energy, and of HOMO and LUMO, in meV."""
    return Bounds(*energy, gap_mae_mev, 1e-3, 1e-3, *orbitals, *orbitals)


def compare(picked: Picked, found: Reference) -> Compared:
    """A row minus its reference."""
    row = picked.row
    energy = MEV * (row["energy"] - found.energy)
    homo, lumo = MEV * (row["homo"] - found.homo), MEV * (row["lumo"] - found.lumo)
    state = SAME if abs(energy) < OTHER_STATE_MEV else LOWER if energy < 0 else HIGHER
    return Compared(
        line=row["line"],
        conformer=row["conformer"],
        smiles=row["smiles"],
        energy_mev=energy,
        homo_mev=homo,
        lumo_mev=lumo,
        gap_mev=lumo - homo,
        dipole_e_bohr=float(np.linalg.norm(np.subtract(row["dipole"], found.dipole))),
        charge_e=float(np.abs(row["mulliken_charges"] - np.array(found.mulliken_charges)).max()),
        state=state if found.converged else NOT_COMPARED,
        deviation_ev=picked.deviation_ev,
        seconds=found.seconds,
        problem=found.problem,
    )


def summarise(rows: Sequence[Compared]) -> dict[str, dict[str, Any]]:
    """For each quantity over the rows in PySCF's state: mean absolute error, bias, percentiles of
    the absolute error and its maximum. Missing LUMOs are passed over; empty without rows."""
    found: dict[str, dict[str, Any]] = {}
    for name in QUANTITIES:
        values = np.array([getattr(row, name) for row in rows if row.state == SAME])
        values = values[np.isfinite(values)]
        if not values.size:
            continue
        size = np.abs(values)
        percentiles = np.percentile(size, PERCENTILES)
        found[name] = {
            "count": int(values.size),
            "mae": float(size.mean()),
            "bias": float(values.mean()),
            **{f"p{p}": float(v) for p, v in zip(PERCENTILES, percentiles, strict=True)},
            "max": float(size.max()),
        }
    return found


def states(rows: Sequence[Compared]) -> dict[str, int]:
    """How many rows are in each state."""
    return {s: sum(row.state == s for row in rows) for s in (SAME, LOWER, HIGHER, NOT_COMPARED)}


def percent(rows: Sequence[Compared], state: str) -> float | None:
    """How many of the rows are in a state; None if there are no rows."""
    return 100 * states(rows)[state] / len(rows) if rows else None


def missed(sample: Sequence[Compared], suspects: Sequence[Compared], bounds: Bounds) -> list[str]:
    """The bounds that are not kept, in words. Means are over the random sample alone: suspects are
    chosen for being bad. Maxima and states are over both."""
    mean, every = summarise(sample), summarise([*sample, *suspects])
    figures = {
        "energy_mae_mev": mean.get("energy_mev", {}).get("mae"),
        "homo_mae_mev": mean.get("homo_mev", {}).get("mae"),
        "lumo_mae_mev": mean.get("lumo_mev", {}).get("mae"),
        "gap_mae_mev": mean.get("gap_mev", {}).get("mae"),
        "energy_max_mev": every.get("energy_mev", {}).get("max"),
        "homo_max_mev": every.get("homo_mev", {}).get("max"),
        "lumo_max_mev": every.get("lumo_mev", {}).get("max"),
        "dipole_max_e_bohr": every.get("dipole_e_bohr", {}).get("max"),
        "charge_max_e": every.get("charge_e", {}).get("max"),
        "higher_percent": percent(sample, HIGHER),
        "lower_percent": percent(sample, LOWER),
        "not_compared_percent": percent([*sample, *suspects], NOT_COMPARED),
    }
    limits = asdict(bounds)
    found = [
        f"{name} is {value:.3g}, the bound is {limits[name]:g}{WHY.get(name, '')}"
        for name, value in figures.items()
        if value is not None and value > limits[name]
    ]
    bad = states(suspects)
    if bad[HIGHER]:
        found.append(
            f"{bad[HIGHER]} of {len(suspects)} suspects are in a higher state than PySCF's"
        )
    if (percent(suspects, LOWER) or 0.0) > bounds.lower_percent:
        below = f"{bad[LOWER]} of {len(suspects)} suspects are below PySCF's energy"
        found.append(below + WHY["lower_percent"])
    if not sample:
        found.append("there is no converged row to recompute")
    elif not mean:
        found.append("no row of the sample could be compared")
    return found


def override(bounds: Bounds, given: dict[str, Any]) -> Bounds:
    """Bounds with those that were given in their place."""
    return replace(bounds, **{name: value for name, value in given.items() if value is not None})


def worst(rows: Sequence[Compared], name: str, count: int) -> list[Compared]:
    """The rows with the largest errors of a quantity, the largest first."""
    finite = [row for row in rows if np.isfinite(getattr(row, name))]
    return sorted(finite, key=lambda row: -abs(getattr(row, name)))[:count]
