"""`schnet import-pyg`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, Literal

import tyro

from schnet.network.config import Readout


@dataclass(frozen=True)
class ImportPyg:
    """Make a run folder from a SchNet that was trained with PyTorch-Geometric."""

    stdout_is_log: ClassVar = True

    weights: tyro.conf.Positional[Path]
    """The network's state_dict: .npz, or .pt if torch is installed."""
    out: Path
    """Folder for the run."""
    target: Literal["gap", "energy", "homo", "lumo", "dipole_norm"]
    """The property that the network predicts."""
    unit: str
    """Unit of its predictions: au, ev, mev, kcal_mol, kj_mol; debye, e_angstrom for a dipole."""
    readout: Readout = "sum"
    """The network's readout: sum for `readout='add'`, dipole for `dipole=True`."""
    neighbours: int = 32
    """The network's `max_num_neighbors`."""
    mean: float = 0.0
    """The network's `mean`, which is added to the output of every atom."""
    std: float = 1.0
    """The network's `std`, which multiplies the output of every atom."""

    def __call__(self) -> int:
        """Run the command; returns the exit code."""
        from schnet.commands.jobs import import_pyg
        from schnet.network import pyg

        weights = pyg.read(self.weights)
        network = pyg.convert(weights, self.readout, self.neighbours, mean=self.mean, std=self.std)
        import_pyg(network, self.out, self.target, unit=self.unit, origin=self.weights.name)
        sizes = ", ".join(f"{name} {value}" for name, value in asdict(network.config).items())
        print(f"{self.out}: {sizes}")
        return 0
