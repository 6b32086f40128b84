"""Options of a price: how a network lies on the IPUs of a replica."""

from dataclasses import dataclass
from typing import Literal

from schnet.errors import UserError


@dataclass(frozen=True)
class PodLayout:
    """IPUs of a replica, and what they hold; by default one, with everything on its tiles."""

    stages: int = 1
    """IPUs of a replica, each with an equal part of the interaction blocks (pipelining)."""
    schedule: Literal["sequential", "grouped", "1f1b"] | None = None
    """With --stages, the order of the packs of an update: one after another, all forward before all
    backward, or, by default, each backward as soon as possible (1f1b)."""
    recompute: bool = False
    """With --stages: keep only the input of a stage, and compute all else again in its backward
    pass."""
    offload_moments: bool = False
    """Keep AdamW's moments in streaming memory, and fetch and store them for each update."""
    inference: bool = False
    """Price predictions instead of a training."""
    available_memory_proportion: float = 0.6
    """Share of a tile's memory for one matrix product."""

    def check(self, blocks: int, precision: str) -> None:
        """Raise UserError for a network of this many blocks that cannot lie like this."""
        if not 1 <= self.stages <= blocks:
            raise UserError(
                f"--stages {self.stages}: the network has {blocks} interaction blocks; give 1 to "
                f"{blocks}, or a network with more (--preset)"
            )
        if (self.recompute or self.schedule) and (self.stages == 1 or self.inference):
            raise UserError(
                "--schedule and --recompute are for a training of --stages 2 or more, in which "
                "packs wait for their backward pass: leave them out"
            )
        if self.recompute and self.schedule == "sequential":
            raise UserError(
                "--recompute saves nothing with --schedule sequential, which keeps one pack: leave "
                "one of them out"
            )
        if self.inference and (self.offload_moments or precision != "float32"):
            raise UserError(
                "--offload-moments and --precision are for a training, and --inference predicts, "
                "in float32: leave one of them out"
            )
        share = self.available_memory_proportion
        if not 0.0 < share <= 1.0:
            raise UserError(
                f"--available-memory-proportion {share}: give a share above 0 and at most 1"
            )
