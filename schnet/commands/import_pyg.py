"""`schnet import-pyg`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True)
class ImportPyg:
    """Make a run of a SchNet that was trained with PyTorch-Geometric."""

    weights: tyro.conf.Positional[Path]
    """Its state_dict: .npz, or .pt if torch is installed."""
    out: Path
    """Folder for the run."""
    target: Literal["gap", "energy", "homo", "lumo", "dipole_norm"]
    """What it predicts."""
    unit: str
    """In which unit: au, ev, mev, kcal_mol, kj_mol; debye, e_angstrom for a dipole."""
    readout: Literal["sum", "mean", "dipole"] = "sum"
    """`readout='add'` there is sum here; dipole stands for `dipole=True`."""
    neighbours: int = 32
    """Its max_num_neighbors."""
    mean: float = 0.0
    """Its `mean`, which it adds to every atom."""
    std: float = 1.0
    """Its `std`."""

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        from ..importing import import_pyg

        network = import_pyg(
            self.weights, self.out, self.target, self.unit, self.readout, self.neighbours,
            self.mean, self.std,
        )  # fmt: skip
        sizes = ", ".join(f"{k} {v}" for k, v in asdict(network.config).items())
        print(f"{self.out}: {sizes}")
        return 0
