"""Molecules and packs for the tests of the network."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from schnet.network.config import ModelConfig
from schnet.network.model import SchNet
from schnet.network.pack import Graphs, PackShape, fill
from schnet.samples.samples import Samples
from schnet.sources import open_source

QM9 = Path(__file__).parent / "data" / "qm9_60.extxyz.gz"
TINY = ModelConfig(
    width=8, filters=6, interactions=2, gaussians=7, cutoff_bohr=9.0, neighbours=28, readout="sum"
)
SHAPE = PackShape(atoms=64, molecules=5, pairs=700)


def qm9(rows=None):
    """Real molecules with their gaps."""
    samples = Samples.concatenate(list(open_source(QM9, "gap").parts()))
    return samples if rows is None else samples.take(np.asarray(rows))


def pyg_weights():
    """Weights and outputs of networks of PyTorch-Geometric."""
    with np.load(QM9.with_name("pyg_schnet.npz")) as file:
        found = dict(file)
    return {k.partition("/")[2]: v for k, v in found.items() if "/" in k}, found


def network(config=TINY, seed=0):
    return SchNet(config, jax.random.key(seed))


@eqx.filter_jit
def output(model, pack):
    """Of a network; compiled, since JAX otherwise compiles each operation by itself."""
    return model(pack)


def graphs(config=TINY):
    return Graphs(config.cutoff_bohr, config.neighbours)


def packed(samples, chosen, shape=SHAPE, config=TINY, targets=None):
    """A pack on the device."""
    targets = np.zeros(len(samples)) if targets is None else targets
    return jax.tree.map(jnp.asarray, fill(shape, graphs(config), samples, chosen, targets))
