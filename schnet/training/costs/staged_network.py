"""The network as a pipeline: its interaction blocks in equal parts on several IPUs."""

from contextlib import AbstractContextManager
from itertools import pairwise

import equinox as eqx
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from pyscf_ipu.ipu import on_ipu
from pyscf_ipu.ipu.steps.streams import Home
from schnet.network.config import ModelConfig
from schnet.network.model import SchNet


class StagedSchNet(SchNet):
    """The network; the embedding is on the first IPU, the readout on the last one."""

    stages: int = eqx.field(static=True)

    def __init__(self, config: ModelConfig, key: PRNGKeyArray, stages: int) -> None:
        super().__init__(config, key)
        self.stages = stages

    def stage(self, number: int) -> int:
        """The IPU of an interaction block."""
        return number * self.stages // len(self.interactions)

    def block(self, number: int) -> AbstractContextManager[None]:
        return on_ipu(self.stage(number))

    def filters(self, distance_bohr: Float[Array, " E"]) -> list[Float[Array, "E F"]]:
        """Filters of every block, from distances: these are what a stage receives."""
        filters: list[Float[Array, "E F"]] = []
        for stage in range(self.stages):
            with on_ipu(stage):
                described = self.described(distance_bohr)
                own = (x for i, x in enumerate(self.interactions) if self.stage(i) == stage)
                filters += [interaction.filters(*described) for interaction in own]
        return filters


def home(blocks: int, stages: int, path: tuple[object, ...], offload: bool = False) -> Home:
    """Where an array of a training is, by its path: on the IPU of its block."""
    names = [str(getattr(key, "name", getattr(key, "idx", ""))) for key in path]
    away = offload and not {"mu", "nu"}.isdisjoint(names)
    for parent, number in pairwise(names):
        if parent in ("interactions", "values"):
            return Home(int(number) * stages // blocks, away)
    return Home(stages - 1 if {"out_1", "out_2"} & set(names) else 0, away)
