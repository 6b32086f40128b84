"""A network as a state_dict of PyTorch-Geometric's SchNet: `schnet.network.pyg` the other way.

What references add to the network's output goes into the weights: the scale into the last layer,
values of elements into `atomref`, and the constant of a mean over atoms into the last bias. The
constant of a sum over atoms has no place there, and is written beside.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.extras import how_to_install
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from qm1b.storage.files import atomic_write
from schnet.errors import UserError
from schnet.network.model import ELEMENTS, Linear
from schnet.network.predictor import Predictor

FOR_ARRAYS, FOR_TORCH = ".npz", ".pt"


@dataclass(frozen=True)
class PygNetwork:
    """What makes the same network in PyTorch-Geometric."""

    state: Mapping[str, np.ndarray]
    """For `load_state_dict`."""
    arguments: Mapping[str, object]
    """Keyword arguments of `torch_geometric.nn.SchNet`; `atomref` is added from the state."""
    unit: str
    """Unit of its predictions."""
    constant: float
    """To be added to every prediction, in that unit."""
    target: str


def converted(predictor: Predictor) -> PygNetwork:
    """The network of a predictor, which predicts in eV (e Angstrom for a dipole) from Angstrom."""
    model, config, references = predictor.model, predictor.config, predictor.references
    is_dipole = config.readout == "dipole"
    unit, factor = ("e_angstrom", 1.0) if is_dipole else ("ev", HARTREE_TO_EV)
    cutoff = config.cutoff_bohr * BOHR_TO_ANGSTROM
    scale, constant = references.scale * factor, references.constant * factor
    state = {
        "embedding.weight": _array(model.embedding),
        "distance_expansion.offset": np.linspace(0.0, cutoff, config.gaussians, dtype=np.float32),
    }
    for number, block in enumerate(model.interactions):
        prefix = f"interactions.{number}."
        for name in ("mlp", "conv.nn"):  # the same layers, which it registers twice
            state |= _layer(f"{prefix}{name}.0", block.filter_in)
            state |= _layer(f"{prefix}{name}.2", block.filter_out)
        state |= _layer(f"{prefix}conv.lin1", block.before)
        state |= _layer(f"{prefix}conv.lin2", block.after)
        state |= _layer(f"{prefix}lin", block.mix)
    state |= _layer("lin1", model.out_1)
    last = _layer("lin2", model.out_2)
    shift = constant if config.readout == "mean" else 0.0
    state["lin2.weight"] = np.float32(scale) * last["lin2.weight"]
    state["lin2.bias"] = np.float32(scale) * last["lin2.bias"] + np.float32(shift)
    if any(references.values) and config.readout == "sum":
        values = np.zeros((ELEMENTS, 1))
        values[list(references.elements), 0] = np.array(references.values) * factor
        state["atomref.weight"] = state["initial_atomref"] = values.astype(np.float32)
    if is_dipole:
        from ase.data import atomic_masses

        state["atomic_mass"] = np.asarray(atomic_masses)
    arguments = {
        "hidden_channels": config.width,
        "num_filters": config.filters,
        "num_interactions": config.interactions,
        "num_gaussians": config.gaussians,
        "cutoff": cutoff,
        "max_num_neighbors": config.neighbours,
        "readout": "mean" if config.readout == "mean" else "add",
        "dipole": is_dipole,
    }
    left = constant if config.readout == "sum" else 0.0
    return PygNetwork(state, arguments, unit, constant=left, target=predictor.target.name)


def write(path: Path, network: PygNetwork) -> None:
    """Write a network: `.pt` by torch, or `.npz`, which needs no torch.

    Raises:
        UserError: another ending, torch is not installed, or the file cannot be written.
    """
    facts = {
        "arguments": dict(network.arguments),
        "unit": network.unit,
        "constant": network.constant,
        "target": network.target,
    }
    buffer = BytesIO()
    if path.suffix == FOR_ARRAYS:
        arrays = {**network.state, "facts": np.array(json.dumps(facts))}
        np.savez(buffer, **arrays)  # pyright: ignore[reportArgumentType]
    elif path.suffix == FOR_TORCH:
        try:
            import torch  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise MissingPackage(
                f"{path} needs torch: run {how_to_install('pyg')}, or write the same weights to "
                f"a {FOR_ARRAYS} file"
            ) from None
        tensors = {name: torch.from_numpy(value) for name, value in network.state.items()}
        torch.save({"state_dict": tensors, **facts}, buffer)
    else:
        raise UserError(f"--pyg {path}: its name must end in {FOR_TORCH} or {FOR_ARRAYS}")
    atomic_write(path, lambda stream: stream.write(buffer.getvalue()))


def _layer(name: str, layer: Linear) -> dict[str, np.ndarray]:
    arrays = {f"{name}.weight": np.ascontiguousarray(_array(layer.weight).T)}
    return arrays if layer.bias is None else arrays | {f"{name}.bias": _array(layer.bias)}


def _array(values: object) -> np.ndarray:
    return np.array(values, np.float32)
