"""The fields of a result by name, one entry per molecule, and the unit of each."""

import math
from typing import Any

import numpy as np

Values = dict[str, Any]
"""Fields of a result by name."""

UNITS = {
    "energy": "Hartree",
    "dispersion": "Hartree",
    "homo": "Hartree",
    "lumo": "Hartree",
    "gap": "Hartree",
    "dipole": "e Bohr",
    "commutator_norm": "Hartree",
    "energy_std": "Hartree",
    "energy_terms": "Hartree",
    "mo_energy": "Hartree",
    "mulliken_charges": "e",
    "spin_populations": "electrons",
    "forces": "Hartree/Bohr",
    "ipu_cycles_low": "cycles",
    "ipu_cycles_high": "cycles",
    "ipu_fullest_tile_bytes": "bytes",
    "positions": "Bohr",
    "charge": "e",
}
"""Units of the fields that have one, and of the molecule's."""


def is_list(values: Values) -> bool:
    """Whether this is the result of a list of molecules."""
    return np.ndim(values["converged"]) == 1


def entries(values: Values) -> list[Values]:
    """The fields once per molecule, without the axis of the list."""
    if not is_list(values):
        return [values]
    return [
        {name: _entry(name, value, i) for name, value in values.items()}
        for i in range(len(values["converged"]))
    ]


def _entry(name: str, value: Any, i: int) -> Any:
    if value is None or name == "settings":
        return value
    return {k: v[i] for k, v in value.items()} if isinstance(value, dict) else value[i]


def record(values: Values) -> dict[str, object]:
    """Plain Python values of one molecule: numbers, text and lists; what is None is left out.

    Args:
        values: the fields of one molecule's result.

    Returns:
        The fields; `molecule` as symbols, positions in Bohr, charge, name and SMILES; `settings` as
        its fields.
    """
    entry = {
        name: plain(value)
        for name, value in values.items()
        if value is not None and name not in ("molecule", "settings")
    }
    mol, settings = values["molecule"], values["settings"]
    if mol is not None:
        described: dict[str, object] = {
            "symbols": mol.symbols,
            "positions": mol.positions.tolist(),
            "charge": mol.charge,
            "name": mol.name,
            "smiles": mol.smiles,
        }
        if mol.multiplicity > 1:
            described["multiplicity"] = mol.multiplicity
        entry["molecule"] = described
    if settings is not None:
        entry["settings"] = settings.to_dict()
    return entry


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's numbers and lists, also inside dicts and lists."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def without_nan(value: Any) -> Any:
    """Plain values with None for numbers that are not finite, which JSON cannot write."""
    if isinstance(value, dict):
        return {name: without_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
