"""What a training would cost on a Pod: one update of every replica, on the simulated IPU.

The program is the step that trains here (`step.make_step`), with one pack after another on every
replica, an all-reduce of the gradient and AdamW.  Weights and moments stay on the IPUs.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from pyscf_ipu.ipu import Streams, Target, profile_of
from pyscf_ipu.ipu.profile.data import NOTHING, Cycles
from pyscf_ipu.ipu.report.profile import Profile
from schnet.errors import UserError
from schnet.network.config import ModelConfig, Optimizer
from schnet.network.model import SchNet
from schnet.network.pack import Graphs, PackShape, empty, stack
from schnet.network.packing import deal, shape_for
from schnet.training.optimizer import optimizer
from schnet.training.step import make_step, mesh, start

UPDATES = 1000  # of a training, for the schedule of its learning rate, which costs the same
DEALT = 20_000  # molecules that are dealt into packs to see how full these become
BILLION = 1e9


@dataclass(frozen=True)
class Packs:
    """The packs of a training."""

    shape: PackShape
    molecules: float
    """Mean number in a pack."""


@dataclass(frozen=True)
class TrainingPrice:
    """The price of one update."""

    profile: Profile
    molecules: float
    """Of an update of all replicas."""

    @property
    def seconds(self) -> Cycles:
        """Low: packs travel while the update before computes. High: one after the other."""
        device, (low, _, high) = self.profile.seconds, self.profile.host_seconds
        return Cycles(max(device.low, low), device.high + high)

    @property
    def molecules_per_second(self) -> Cycles:
        seconds = self.seconds
        return Cycles(self.molecules / seconds.high, self.molecules / seconds.low)

    @property
    def hours_per_billion(self) -> Cycles:
        """Hours in which a billion examples are learned from."""
        rate = self.molecules_per_second
        return Cycles(BILLION / rate.high / 3600.0, BILLION / rate.low / 3600.0)

    @property
    def cycles(self) -> Mapping[str, Cycles]:
        """The cycles of the parts of an update."""
        by_stage = self.profile.total_by("stage")
        parts = {name: by_stage.pop(name, NOTHING) for name in ("forward_backward", "all_reduce")}
        return {
            "forward_backward": parts["forward_backward"],
            "update": sum(by_stage.values(), NOTHING),
            "all_reduce": parts["all_reduce"],
        }

    def to_dict(self) -> dict[str, object]:
        """The figures, in types that JSON has; cycles are low ones."""
        rate, memory = self.molecules_per_second, self.profile.memory
        return {
            "target": self.profile.target,
            "replicas": self.profile.replicas,
            "molecules_per_second": rate.to_dict(),
            "cycles": {name: cycles.low for name, cycles in self.cycles.items()},
            "memory": {
                "max_tile_bytes": memory.max_tile_bytes,
                "limit_bytes": memory.limit_bytes,
                "max_code_bytes": int(memory.code.max(initial=0)),
                "executable_bytes": memory.executable_bytes,
                "overflowing_tiles": len(memory.overflowing),
            },
            "unknown_ops": self.profile.unknown_ops,
        }


def packs_of(sizes: np.ndarray, model: ModelConfig, molecules: int) -> Packs:
    """Packs of about this many molecules, which have these numbers of atoms.

    Raises:
        UserError: there is no molecule.
    """
    if not len(sizes):
        raise UserError("there is no molecule to train on: give --data with rows")
    graphs = Graphs(model.cutoff_bohr, model.neighbours)
    shape = shape_for(Counter(sizes.tolist()), graphs, molecules)
    some = sizes[:DEALT]
    dealt = deal(some, shape, graphs, random=np.random.default_rng(0))
    return Packs(shape, len(some) / len(dealt))


def price_training(
    model: ModelConfig,
    config: Optimizer,
    packs: Packs,
    target: Target,
    accumulation: int = 1,
    precision: str = "float32",
) -> TrainingPrice:
    """The price of an update on all IPUs of a system, a replica on each.

    Args:
        model: size of the network.
        config: of the optimizer.
        packs: what each replica learns from.
        target: a system; a chip by itself is one replica.
        accumulation: packs of a replica for one update.
        precision: of the layers.
    """
    replicas = target.most_replicas
    rule = optimizer(config, UPDATES)
    step = make_step(rule, config, jnp.dtype(precision), devices=mesh(1))
    state = jax.eval_shape(
        lambda: start(SchNet(model, jax.random.key(0)), rule, precision == "float16")
    )
    some = stack([empty(packs.shape)] * accumulation, (1, 1, accumulation))
    profile = profile_of(
        step, target, state, some, replicas=replicas, streams=Streams(frozenset((0,)), True)
    )
    return TrainingPrice(profile, packs.molecules * accumulation * replicas)
