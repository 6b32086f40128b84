"""SchNet of PyTorch-Geometric: its weights in our network.

Lengths there are in Angstrom and here in Bohr: the cutoff is converted, and with it the Gaussians,
whose centres and widths are parts of it; nothing else knows of lengths but the dipole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from pyscf_ipu.units import BOHR_TO_ANGSTROM

from .config import ModelConfig
from .errors import UserError
from .model import Interaction, Linear, SchNet

Weights = Mapping[str, np.ndarray]
Readout = Literal["sum", "mean", "dipole"]


@dataclass(frozen=True)
class Imported:
    """A network and its size."""

    model: SchNet
    config: ModelConfig
    atom_references: np.ndarray | None
    """By atomic number, in the unit of the network's training, if it had any."""


def read(path: Path) -> dict[str, np.ndarray]:
    """The weights of an .npz file, or of a .pt file if torch is installed.

    Raises:
        UserError: not there, no weights, or torch is needed and missing.
    """
    if not path.exists():
        raise UserError(f"{path} does not exist; give a state_dict as .npz or .pt.")
    try:
        if path.suffix == ".npz":
            with np.load(path) as file:
                return {name: file[name] for name in file.files}
        return {name: np.asarray(value) for name, value in _torch_load(path).items()}
    except (OSError, ValueError, AttributeError, KeyError) as error:
        raise UserError(f"{path} is no state_dict of weights ({error}).") from None


def _torch_load(path: Path) -> Mapping[str, Any]:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise UserError(
            f"reading {path} needs torch: install it, or save the weights with "
            "`np.savez(path, **{k: v.numpy() for k, v in model.state_dict().items()})`."
        ) from None
    import pickle

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(f"{path} is no state_dict: save model.state_dict() ({first}).") from None
    return found.get("state_dict", found)


def convert(
    weights: Weights, readout: Readout, neighbours: int, mean: float = 0.0, std: float = 1.0
) -> Imported:
    """A network with these weights.

    Args:
        weights: arrays by the names of PyTorch-Geometric's `SchNet.state_dict()`.
        readout: its readout (`add` there is `sum` here), or `dipole` for `dipole=True`.
        neighbours: its `max_num_neighbors`. Where an atom has more, here the nearest are taken.
        mean: its `mean`, which it adds to what every atom gives, after `std`; not to a dipole.
        std: its `std`.

    Raises:
        UserError: names or shapes are not those of such a network.
    """
    try:
        return _convert(weights, readout, neighbours, mean, std)
    except KeyError as error:
        raise UserError(
            f"the weights have no {error}: they must be the state_dict of a SchNet of "
            "PyTorch-Geometric."
        ) from None


def _convert(
    weights: Weights, readout: Readout, neighbours: int, mean: float, std: float
) -> Imported:
    centres = weights["distance_expansion.offset"]
    count = 1 + max(int(k.split(".")[1]) for k in weights if k.startswith("interactions."))
    width = weights["embedding.weight"].shape[1]
    config = ModelConfig(
        width=width,
        filters=weights["interactions.0.mlp.0.weight"].shape[0],
        interactions=count,
        gaussians=len(centres),
        cutoff_bohr=float(centres[-1]) / BOHR_TO_ANGSTROM,
        neighbours=neighbours,
        readout=readout,
    )
    config.check()
    blocks = [_block(weights, f"interactions.{i}.") for i in range(count)]
    references = weights.get("atomref.weight")
    if references is not None and readout == "mean":
        raise UserError(
            "these weights have atom references, which a mean over atoms averages: only networks "
            "with --readout sum are imported with them."
        )
    # Charges times positions, which are in Bohr here: the dipole's only length.
    mean, std = (0.0, BOHR_TO_ANGSTROM) if readout == "dipole" else (mean, std)
    last = _scaled(_linear(weights, "lin2"), mean, std * float(weights.get("scale", 1.0)))
    parts = {
        "embedding": jnp.asarray(weights["embedding.weight"], jnp.float32),
        "interactions": blocks,
        "out_1": _linear(weights, "lin1"),
        "out_2": last,
        "cutoff_bohr": config.cutoff_bohr,
        "n_gaussians": config.gaussians,
        "readout": readout,
    }
    return Imported(_made(SchNet, parts), config, None if references is None else references[:, 0])


def _block(weights: Weights, prefix: str) -> Interaction:
    return _made(
        Interaction,
        {
            "filter_in": _linear(weights, f"{prefix}mlp.0"),
            "filter_out": _linear(weights, f"{prefix}mlp.2"),
            "before": _linear(weights, f"{prefix}conv.lin1", bias=False),
            "after": _linear(weights, f"{prefix}conv.lin2"),
            "mix": _linear(weights, f"{prefix}lin"),
        },
    )


def _linear(weights: Weights, name: str, bias: bool = True) -> Linear:
    return _made(
        Linear,
        {
            "weight": jnp.asarray(weights[f"{name}.weight"].T, jnp.float32),
            "bias": jnp.asarray(weights[f"{name}.bias"], jnp.float32) if bias else None,
        },
    )


def _made(kind: Any, parts: dict[str, Any]) -> Any:
    """A module with these fields, without drawing random weights first."""
    module = object.__new__(kind)
    for name, value in parts.items():
        object.__setattr__(module, name, value)
    return module


def _scaled(layer: Linear, mean: float, std: float) -> Linear:
    """The layer, times std, plus mean."""
    assert layer.bias is not None
    factor, shift = jnp.asarray(std, jnp.float32), jnp.asarray(mean, jnp.float32)
    new = [layer.weight * factor, layer.bias * factor + shift]
    return eqx.tree_at(lambda one: [one.weight, one.bias], layer, new)
