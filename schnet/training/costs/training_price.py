"""What a training would cost on a Pod: one update of every replica, on the simulated IPU.

The program is the step that trains here (`step.make_step`), with one pack after another on every
replica, an all-reduce of the gradient and AdamW.  Weights stay on the IPUs, and so do the moments
unless they are in streaming memory.  A replica of several IPUs is a pipeline.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from pyscf_ipu.ipu import Streams, Target, profile_of
from pyscf_ipu.ipu.profile.data import NOTHING, Cycles
from pyscf_ipu.ipu.report.profile import Profile
from schnet.errors import UserError
from schnet.network.config import ModelConfig, Optimizer, Schedule
from schnet.network.filter_tables import FilterTables, predict, tabulate
from schnet.network.model import SchNet
from schnet.network.pack import Graphs, Pack, PackShape, empty, stack
from schnet.network.packing import deal, shape_for
from schnet.training.costs.layout import PodLayout
from schnet.training.costs.staged_network import StagedSchNet, home
from schnet.training.optimizer import optimizer
from schnet.training.prepare import Prepared
from schnet.training.step import make_step, mesh, start

UPDATES = 1000  # of a training, for the schedule of its learning rate, which costs the same
DEALT = 20_000  # molecules that are dealt into packs to see how full these become
BILLION = 1e9
PLAIN, ALONE = Schedule(), PodLayout()


@dataclass(frozen=True)
class Packs:
    """The packs of a training."""

    shape: PackShape
    molecules: float
    """Mean number in a pack."""
    forces: bool = False
    """Whether forces are learned, too."""


@dataclass(frozen=True)
class TrainingPrice:
    """The price of one update, or of one call that predicts."""

    profile: Profile
    molecules: float
    """Of an update of all replicas."""
    idle_ipus: int = 0
    """IPUs of the system that are in no replica."""

    @property
    def trains(self) -> bool:
        """Whether this is an update."""
        return "backward" in self.profile.total_by("stage")

    @property
    def device_seconds(self) -> Cycles:
        """Without the packs from the host."""
        schedule = self.profile.pipeline()
        cycles = self.profile.cycles if schedule is None else schedule.cycles
        return cycles * (1.0 / self.profile.clock_hz)

    @property
    def seconds(self) -> Cycles:
        """Low: packs travel while the update before computes. High: one after the other."""
        device, (low, _, high) = self.device_seconds, self.profile.host_seconds
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
        """The cycles of the parts of an update, of all IPUs of a replica."""
        if not self.trains:
            return {"forward": self.profile.cycles}
        stages = self.profile.total_by("stage")
        named = ("forward", "backward", "all_reduce")
        parts = {name: stages.pop(name, NOTHING) for name in named}
        schedule = self.profile.pipeline()
        if schedule is not None:  # its backward passes have what is computed again
            turns = schedule.micro_batches.count
            parts["backward"] = sum((s.backward * turns for s in schedule.stages), NOTHING)
        return parts | {"update": sum(stages.values(), NOTHING)}

    def sentence(self) -> str:
        """The figures in one line."""
        rate, hours, memory = self.molecules_per_second, self.hours_per_billion, self.profile.memory
        return (
            f"simulated {self.profile.target}: {rate.low:,.0f} to {rate.high:,.0f} molecules/s, "
            f"{hours.low:,.2f} to {hours.high:,.2f} hours per billion examples, fullest tile "
            f"{memory.max_tile_bytes:,} of {memory.limit_bytes:,} bytes"
        )

    def to_dict(self) -> dict[str, object]:
        """The figures, in types that JSON has; cycles are low ones."""
        rate, memory = self.molecules_per_second, self.profile.memory
        schedule, cycles = self.profile.pipeline(), {k: c.low for k, c in self.cycles.items()}
        return {
            "target": self.profile.target,
            "replicas": self.profile.replicas,
            "idle_ipus": self.idle_ipus,
            "molecules_per_second": rate.to_dict(),
            "cycles": {
                "forward_backward": cycles["forward"] + cycles.get("backward", 0.0),
                **cycles,
            },
            "pipeline": schedule and {k: v for k, v in schedule.to_dict().items() if k != "bars"},
            "memory": {
                "max_tile_bytes": memory.max_tile_bytes,
                "limit_bytes": memory.limit_bytes,
                "max_code_bytes": int(memory.code.max(initial=0)),
                "executable_bytes": memory.executable_bytes,
                "overflowing_tiles": len(memory.overflowing),
                "streaming_bytes": memory.streaming_bytes,
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
    schedule: Schedule = PLAIN,
    layout: PodLayout = ALONE,
) -> TrainingPrice:
    """The price of an update, or of a call that predicts as many packs.

    All IPUs of a system take part; a chip by itself is one replica.  The schedule gives the packs
    of a replica for one update, and the precision of the layers.

    Raises:
        UserError: the network cannot lie like this on the IPUs of the system.
    """
    layout.check(model.interactions, schedule.precision)
    stages, ipus = layout.stages, target.most_replicas
    if not target.ipus_per_system.known:
        ipus = stages
    if stages > ipus:
        raise UserError(f"--stages {stages}: {target.name} has {ipus} IPUs; give at most that")
    if packs.forces and stages > 1:
        raise UserError("forces need two backward passes: price them without --stages")
    count = schedule.accumulation
    some = stack([empty(packs.shape)] * count, (1, 1, count))
    network, dtype = eqx.filter_eval_shape(_network, model, stages), jnp.dtype(schedule.precision)
    rule, rounding = optimizer(config, UPDATES), schedule.stochastic_rounding
    program, arguments = _predictions, (network, eqx.filter_eval_shape(tabulate, network))
    if not layout.inference:
        program = make_step(
            rule, config, dtype, devices=mesh(1), forces=packs.forces, rounding=rounding
        )
        arguments = (eqx.filter_eval_shape(start, network, rule, dtype == jnp.float16),)
    profile = profile_of(
        program,
        target,
        *arguments,
        some,
        num_ipus=stages,
        replicas=ipus // stages,
        streams=Streams(
            frozenset(range(len(arguments))),
            overlap=True,
            home=partial(home, model.interactions, stages, offload=layout.offload_moments),
        ),
        available_memory_proportion=layout.available_memory_proportion,
    )
    order = layout.schedule or profile.micro_batches.order
    batches = replace(profile.micro_batches, order=order, recompute=layout.recompute)
    molecules = packs.molecules * count * profile.replicas
    return TrainingPrice(profile.scheduled(batches), molecules, ipus % stages)


def price_prepared(prepared: Prepared, target: Target) -> TrainingPrice:
    """The price of an update of a training, with all of its settings, on the IPUs of a system."""
    settings, shape = prepared.settings, prepared.batches.shape
    packs = Packs(shape, prepared.rows / prepared.packs, prepared.target.has_forces)
    return price_training(
        settings.model, settings.optimizer, packs, target=target, schedule=settings.schedule
    )


def _network(model: ModelConfig, stages: int) -> SchNet:
    key = jax.random.key(0)
    return SchNet(model, key) if stages == 1 else StagedSchNet(model, key, stages)


def _predictions(model: SchNet, tables: FilterTables, packs: Pack) -> Float[Array, "S M"]:
    """What `schnet predict` computes of packs [1, 1, S, ...], one after another."""

    def one(_: None, pack: Pack) -> tuple[None, Float[Array, " M"]]:
        with jax.named_scope("forward"):
            return None, predict(model, tables, pack)

    return jax.lax.scan(one, None, jax.tree.map(lambda x: x[0, 0], packs))[1]
