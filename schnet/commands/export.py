"""`schnet export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import tyro

from pyscf_ipu.base.command_line.targets import check_folders
from schnet.errors import UserError


@dataclass(frozen=True)
class ExportNetwork:
    """Write a trained network for other programs."""

    stdout_is_log: ClassVar = True

    run: tyro.conf.Positional[Path]
    """Folder of a run."""
    pyg: Path | None = None
    """Weights and arguments of PyTorch-Geometric's SchNet: .pt if torch is installed, or .npz."""
    onnx: Path | None = None
    """ONNX graph, for onnxruntime and others; needs the package onnx."""

    def __call__(self) -> int:
        """Run the command; returns the exit code."""
        from schnet.network.exports import onnx_graph, pyg_weights
        from schnet.runs.run_folder import RunFolder

        if self.pyg is None and self.onnx is None:
            raise UserError("nothing to write: give --pyg FILE.pt, --onnx FILE.onnx, or both")
        check_folders((self.pyg, self.onnx))
        predictor = RunFolder(self.run).predictor()
        if unsure := ", ".join(predictor.references.open_elements):
            print(f"note: the training rows did not determine the references of {unsure}")
        if self.pyg is not None:
            network = pyg_weights.converted(predictor)
            pyg_weights.write(self.pyg, network)
            more = f"; add {network.constant!r} to each prediction" if network.constant else ""
            print(f"{self.pyg}: {network.target} in {network.unit}, lengths in Angstrom{more}")
        if self.onnx is not None:
            onnx_graph.write(self.onnx, predictor)
            print(f"{self.onnx}: {predictor.target.name} in eV, positions in Angstrom")
        return 0
