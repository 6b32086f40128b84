"""Weights of PyTorch-Geometric's SchNet in our network.

Its lengths are in Angstrom, ours in Bohr: the cutoff is converted, and with it the Gaussians, whose
centres and widths are fractions of it. The only other length is the dipole's.
"""

import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from pyscf_ipu.base.errors import MissingPackage
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
from schnet.errors import UserError
from schnet.network.config import ModelConfig, Readout
from schnet.network.model import InteractionBlock, Linear, SchNet

Weights = Mapping[str, np.ndarray]
M = TypeVar("M", bound=eqx.Module)

MOST_BYTES = 1 << 30
"""Of the arrays in a file, unpacked: far above any SchNet."""

_BLOCK = re.compile(r"interactions\.([0-9]{1,3})\.")
_DAMAGE = (OSError, EOFError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError)
_DAMAGE += (RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)
"""What NumPy, torch and their containers raise for damaged files."""


class ImportedNetwork(NamedTuple):
    """A network and its size."""

    model: SchNet
    config: ModelConfig
    atom_references: np.ndarray | None
    """By atomic number, in the unit of the network's training, if it has any."""


def read(path: Path) -> dict[str, np.ndarray]:
    """Read the weights in an .npz file, or in a .pt file if torch is installed; raises UserError
    if that fails."""
    if not path.is_file():
        raise UserError(f"{path} does not exist or is no file; give a state_dict as .npz or .pt")
    tensors = None if path.suffix == ".npz" else _torch_load(path)
    try:
        if tensors is not None:
            return {name: np.asarray(value) for name, value in tensors.items()}
        with zipfile.ZipFile(path) as packed:
            if sum(member.file_size for member in packed.infolist()) > MOST_BYTES:
                raise UserError(f"{path} unpacks to more than {MOST_BYTES >> 20} MiB")
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    except UserError:
        raise
    except _DAMAGE as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{path} is not a state_dict of weights ({what})") from None


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
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (*_DAMAGE, pickle.UnpicklingError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"{path} is not a state_dict: save model.state_dict() ({first})") from None
    return content.get("state_dict", content) if isinstance(content, Mapping) else {}


def convert(
    weights: Weights, readout: Readout, neighbours: int, mean: float = 0.0, std: float = 1.0
) -> ImportedNetwork:
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
) -> ImportedNetwork:
    centres = _array(weights, "distance_expansion.offset", 1)
    blocks = [match[1] for name in weights if (match := _BLOCK.match(name))]
    config = ModelConfig(
        width=_array(weights, "embedding.weight", 2).shape[1],
        filters=_array(weights, "interactions.0.mlp.0.weight", 2).shape[0],
        interactions=1 + max(map(int, blocks)),
        gaussians=len(centres),
        cutoff_bohr=float(centres[-1:].sum()) / BOHR_TO_ANGSTROM,
        neighbours=neighbours,
        readout=readout,
    )
    config.check()
    has_references = "atomref.weight" in weights
    references = _array(weights, "atomref.weight", 2)[:, 0] if has_references else None
    if references is not None and readout == "mean":
        raise UserError(
            "these weights have atom references, which --readout mean would average: networks with "
            "atom references need --readout sum"
        )
    scale = _array({"scale": np.ravel(weights.get("scale", 1.0))}, "scale", 1).prod()
    # Charges times positions, which are in Bohr here: the dipole's only length.
    mean, std = (0.0, BOHR_TO_ANGSTROM) if readout == "dipole" else (mean, std)
    model = _made(
        SchNet,
        embedding=jnp.asarray(_array(weights, "embedding.weight", 2), jnp.float32),
        interactions=[_block(weights, f"interactions.{i}.") for i in range(config.interactions)],
        out_1=_linear(weights, "lin1"),
        out_2=_scaled(_linear(weights, "lin2"), mean, std * float(scale)),
        cutoff_bohr=config.cutoff_bohr,
        n_gaussians=config.gaussians,
        readout=readout,
    )
    sizes, expected = (
        [leaf.shape for leaf in jax.tree.leaves(one)]
        for one in (model, eqx.filter_eval_shape(SchNet, config, jax.random.key(0)))
    )
    if sizes != expected:
        raise UserError(f"the weights have the sizes {sizes}, a network of {config} {expected}")
    return ImportedNetwork(model, config, references)


def _array(weights: Weights, name: str, dimensions: int) -> np.ndarray:
    """Weights that are numbers, all finite; raises UserError for others."""
    values = weights[name]
    if values.ndim != dimensions or values.dtype.kind not in "fiu" or not np.isfinite(values).all():
        raise UserError(
            f"the weight {name} must be {dimensions}-dimensional, with finite numbers, but has the "
            f"shape {values.shape} of {values.dtype}: the file is damaged, or of another network"
        )
    return values


def _block(weights: Weights, prefix: str) -> InteractionBlock:
    names = {"filter_in": "mlp.0", "filter_out": "mlp.2", "after": "conv.lin2", "mix": "lin"}
    layers = {ours: _linear(weights, prefix + theirs) for ours, theirs in names.items()}
    before = _linear(weights, f"{prefix}conv.lin1", bias=False)
    return _made(InteractionBlock, before=before, **layers)


def _linear(weights: Weights, name: str, bias: bool = True) -> Linear:
    return _made(
        Linear,
        weight=jnp.asarray(_array(weights, f"{name}.weight", 2).T, jnp.float32),
        bias=jnp.asarray(_array(weights, f"{name}.bias", 1), jnp.float32) if bias else None,
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
