"""Weights of PyTorch-Geometric's SchNet in our network.

Its lengths are in Angstrom, ours in Bohr: the cutoff is converted, and with it the Gaussians, whose
centres and widths are fractions of it. The only other length is the dipole's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from pyscf_ipu.errors import MissingPackage
from pyscf_ipu.units import BOHR_TO_ANGSTROM
from schnet.errors import UserError
from schnet.network.config import ModelConfig, Readout
from schnet.network.model import Interaction, Linear, SchNet

Weights = Mapping[str, np.ndarray]
M = TypeVar("M", bound=eqx.Module)


class Imported(NamedTuple):
    """A network and its size."""

    model: SchNet
    config: ModelConfig
    atom_references: np.ndarray | None
    """By atomic number, in the unit of the network's training, if it has any."""


def read(path: Path) -> dict[str, np.ndarray]:
    """Read the weights in an .npz file, or in a .pt file if torch is installed; raises UserError
    if that fails."""
    if not path.exists():
        raise UserError(f"{path} does not exist; give a state_dict as .npz or .pt")
    tensors = None if path.suffix == ".npz" else _torch_load(path)
    try:
        if tensors is not None:
            return {name: np.asarray(value) for name, value in tensors.items()}
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, AttributeError, KeyError) as error:
        raise UserError(f"{path} is not a state_dict of weights ({error})") from None


def _torch_load(path: Path) -> Mapping[str, object]:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingPackage(
            f"reading {path} needs torch: install it, or save the weights with "
            "`np.savez(path, **{k: v.numpy() for k, v in model.state_dict().items()})`"
        ) from None
    import pickle

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        first = str(error).splitlines()[0]
        raise UserError(f"{path} is not a state_dict: save model.state_dict() ({first})") from None
    return found.get("state_dict", found)


def convert(
    weights: Weights, readout: Readout, neighbours: int, mean: float = 0.0, std: float = 1.0
) -> Imported:
    """Make a network with these weights.

    Args:
        weights: arrays by the names of PyTorch-Geometric's `SchNet.state_dict()`.
        readout: its readout (our `sum` is its `add`), or `dipole` for `dipole=True`.
        neighbours: its `max_num_neighbors`. Where an atom has more, here the nearest are taken.
        mean: its `mean`, which it adds to the output of every atom, after `std`; not to a dipole.
        std: its `std`.

    Raises:
        UserError: the names or shapes do not belong to such a network.
    """
    try:
        return _convert(weights, readout, neighbours, mean=mean, std=std)
    except KeyError as error:
        raise UserError(
            f"the weights have no {error}: they must be the state_dict of a SchNet of "
            "PyTorch-Geometric"
        ) from None


def _convert(
    weights: Weights, readout: Readout, neighbours: int, mean: float, std: float
) -> Imported:
    centres = weights["distance_expansion.offset"]
    config = ModelConfig(
        width=weights["embedding.weight"].shape[1],
        filters=weights["interactions.0.mlp.0.weight"].shape[0],
        interactions=1
        + max(int(k.split(".")[1]) for k in weights if k.startswith("interactions.")),
        gaussians=len(centres),
        cutoff_bohr=float(centres[-1]) / BOHR_TO_ANGSTROM,
        neighbours=neighbours,
        readout=readout,
    )
    config.check()
    references = weights.get("atomref.weight")
    if references is not None and readout == "mean":
        raise UserError(
            "these weights have atom references, which --readout mean would average: networks with "
            "atom references need --readout sum"
        )
    # Charges times positions, which are in Bohr here: the dipole's only length.
    mean, std = (0.0, BOHR_TO_ANGSTROM) if readout == "dipole" else (mean, std)
    model = _made(
        SchNet,
        embedding=jnp.asarray(weights["embedding.weight"], jnp.float32),
        interactions=[_block(weights, f"interactions.{i}.") for i in range(config.interactions)],
        out_1=_linear(weights, "lin1"),
        out_2=_scaled(_linear(weights, "lin2"), mean, std * float(weights.get("scale", 1.0))),
        cutoff_bohr=config.cutoff_bohr,
        n_gaussians=config.gaussians,
        readout=readout,
    )
    return Imported(model, config, None if references is None else references[:, 0])


def _block(weights: Weights, prefix: str) -> Interaction:
    return _made(
        Interaction,
        filter_in=_linear(weights, f"{prefix}mlp.0"),
        filter_out=_linear(weights, f"{prefix}mlp.2"),
        before=_linear(weights, f"{prefix}conv.lin1", bias=False),
        after=_linear(weights, f"{prefix}conv.lin2"),
        mix=_linear(weights, f"{prefix}lin"),
    )


def _linear(weights: Weights, name: str, bias: bool = True) -> Linear:
    return _made(
        Linear,
        weight=jnp.asarray(weights[f"{name}.weight"].T, jnp.float32),
        bias=jnp.asarray(weights[f"{name}.bias"], jnp.float32) if bias else None,
    )


def _made(kind: type[M], **parts: object) -> M:
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
