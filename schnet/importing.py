"""A folder of a run made of somebody else's weights."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from qm1b.manifest import package_versions

from . import checkpoint, pyg
from .errors import UserError
from .folder import PACKAGES, RunFolder
from .references import HIGHEST, AtomReferences
from .targets import target_of


def import_pyg(
    weights: Path,
    out: Path,
    target: str,
    unit: str,
    readout: pyg.Readout = "sum",
    neighbours: int = 32,
    mean: float = 0.0,
    std: float = 1.0,
) -> pyg.Imported:
    """Write the folder of a run that predicts as PyTorch-Geometric's SchNet does.

    Args:
        weights: .npz or .pt of its state_dict.
        out: folder; must not hold a run.
        target: what it predicts.
        unit: in which unit.
        readout: see `pyg.convert`.
        neighbours: see `pyg.convert`.
        mean: its `mean`, in `unit`.
        std: its `std`, in `unit`.

    Raises:
        UserError: no such weights, target or unit, or a run is there already.
    """
    wanted = target_of(target)
    factor = wanted.per_atomic(unit)
    folder = RunFolder(out)
    if folder.json.exists():
        raise UserError(f"{out} holds a run already; give another --out.")
    found = pyg.convert(pyg.read(weights), readout, neighbours, mean, std)
    values = np.zeros(HIGHEST + 1)
    if found.atom_references is not None:
        values[: len(found.atom_references)] = found.atom_references / factor
    elements = tuple(range(1, 100))
    references = AtomReferences(elements, tuple(values[1:100].tolist()), 0.0, 1.0 / factor)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"folder {out} cannot be made: {error.strerror}.") from None
    checkpoint.save(folder.best, found.model, {"from": weights.name})
    folder.write(
        {
            "target": target,
            "target_unit": wanted.unit,
            "model": asdict(found.config),
            "references": references.to_dict(),
            "from": f"PyTorch-Geometric, {weights.name}, in {unit}",
            "versions": package_versions(PACKAGES),
        }
    )
    return found
