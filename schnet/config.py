"""The model's and the training's settings: what the command line and the YAML file are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from .errors import UserError
from .targets import Target


@dataclass(frozen=True)
class ModelConfig:
    """The size of the network."""

    width: int = 128
    """Features of an atom."""
    filters: int = 128
    """Features of a pair of atoms."""
    interactions: int = 3
    """Interaction blocks."""
    gaussians: int = 50
    """Gaussians that describe a distance."""
    cutoff_bohr: float = 15.0
    """Atoms farther apart do not hear each other."""
    neighbours: int = 28
    """An atom hears at most so many others, the nearest."""
    readout: Literal["sum", "mean", "dipole"] = "mean"
    """How atoms become a molecule; chosen by the target unless given."""

    def check(self) -> None:
        """Raise UserError for sizes that are no network."""
        for name in ("filters", "interactions", "neighbours"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name} {getattr(self, name)}: give 1 or more.")
        for name in ("width", "gaussians"):
            if getattr(self, name) < 2:
                raise UserError(f"--{name} {getattr(self, name)}: give 2 or more.")
        if not self.cutoff_bohr > 0:
            raise UserError(f"--cutoff-bohr {self.cutoff_bohr}: give a positive length in Bohr.")


PRESETS = {
    "small": ModelConfig(),
    # The network that was trained on QM1B, arXiv:2311.01135.
    "schnet-9m": ModelConfig(width=1024, filters=256, interactions=5, gaussians=200),
}


@dataclass(frozen=True)
class Optimizer:
    """AdamW: a linear warm-up, then a cosine down to `final_fraction` of the rate."""

    learning_rate: float = 5e-4
    """Largest learning rate."""
    weight_decay: float = 1e-4
    """Of AdamW, on matrices only."""
    warmup_fraction: float = 0.05
    """Part of all updates in which the rate rises."""
    final_fraction: float = 0.01
    """What is left of the rate at the end."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    ema: float = 0.999
    """Decay of the averaged weights, which are what is validated and kept; 0 for none."""
    loss: Literal["l1", "huber", "mse"] = "l1"
    """In units of the standard deviation; huber turns from squares to lines at 1."""

    def check(self) -> None:
        """Raise UserError for what cannot be trained with."""
        if not (self.learning_rate > 0 and self.clip > 0 and self.weight_decay >= 0):
            raise UserError(
                "--learning-rate and --clip must be positive, --weight-decay not below 0."
            )
        if not (0 <= self.ema < 1 and 0 <= self.warmup_fraction < 1):
            raise UserError("--ema and --warmup-fraction must be at least 0 and below 1.")
        if not 0 <= self.final_fraction <= 1:
            raise UserError(f"--final-fraction {self.final_fraction}: give a number from 0 to 1.")


@dataclass(frozen=True)
class Schedule:
    """How much is trained, on what share of the machine."""

    max_epochs: int = 100
    """Passes over the training set; the learning rate is laid out over them."""
    max_minutes: float = 0.0
    """Stop after so long, wherever the learning rate is; 0 for no limit. Can be resumed."""
    valid_every: int = 1
    """Epochs between validations; the last epoch always has one. For sets so small that a pass over
    them costs less than a validation."""
    pack_molecules: int = 32
    """Molecules of a pack, on average."""
    accumulation: int = 1
    """Packs that a device adds up before an update (gradient accumulation)."""
    iterations: int = 1
    """Updates in one call of the compiled step (device iterations)."""
    devices: int = 0
    """Devices that share the packs of an update (replication factor); 0 for all."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of the layers; weights, distances and sums stay in float32."""
    checkpoint_minutes: float = 10.0
    """Time between checkpoints inside an epoch; there is one after every epoch."""
    window_rows: int = 200_000
    """Rows in memory; a larger training set is shuffled in windows of so many."""

    def check(self) -> None:
        """Raise UserError for what cannot be run."""
        for name in (
            "max_epochs",
            "valid_every",
            "pack_molecules",
            "accumulation",
            "iterations",
            "window_rows",
        ):
            if getattr(self, name) < 1:
                option = name.replace("_", "-")
                raise UserError(f"--{option} {getattr(self, name)}: give 1 or more.")
        if self.max_minutes < 0 or self.devices < 0 or not self.checkpoint_minutes > 0:
            raise UserError(
                "--max-minutes and --devices must not be negative, --checkpoint-minutes positive."
            )


def preset(name: str) -> ModelConfig:
    """The model of a preset; raises UserError for an unknown name."""
    if name not in PRESETS:
        raise UserError(f"preset {name!r} is not known; allowed are {', '.join(PRESETS)}.")
    return PRESETS[name]


def readout_for(model: ModelConfig, target: Target) -> ModelConfig:
    """The model with the readout that suits a target: energies add up over atoms, orbital energies
    do not grow with the molecule, a dipole is a vector."""
    if target.quantity == "dipole":
        return replace(model, readout="dipole")
    return replace(model, readout="sum" if target.extensive else "mean")
