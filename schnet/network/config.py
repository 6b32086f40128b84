"""Settings of the network, the optimizer and the schedule: sections of config.yaml, and options."""

import math
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from schnet.errors import UserError
from schnet.samples.targets import Target

Readout = Literal["sum", "mean", "dipole"]


@dataclass(frozen=True)
class ModelConfig:
    """The size of the network; by default that of --preset, --config or --init."""

    width: int = 128
    """Number of features per atom."""
    filters: int = 128
    """Number of features per pair of atoms."""
    interactions: int = 3
    """Number of interaction blocks."""
    gaussians: int = 50
    """Number of Gaussians that describe a distance."""
    cutoff_bohr: float = 15.0
    """Atoms farther apart do not interact."""
    neighbours: int = 28
    """Maximum number of (nearest) neighbours per atom."""
    readout: Readout = "mean"
    """How the atoms of a molecule are combined; by default sum for energies, mean for orbital
    energies and gaps, dipole for dipole moments."""

    def check(self) -> None:
        """Raise UserError for sizes that do not make a network."""
        _at_least(1, self, "filters", "interactions", "neighbours")
        _at_least(2, self, "width", "gaussians")
        if not self.cutoff_bohr > 0:
            raise UserError(f"--cutoff-bohr {self.cutoff_bohr}: give a positive length in Bohr")


PRESETS = MappingProxyType(
    {
        "small": ModelConfig(),
        # The network that was trained on QM1B, arXiv:2311.01135.
        "schnet-9m": ModelConfig(width=1024, filters=256, interactions=5, gaussians=200),
        # The same as the trainer made it: PyTorch-Geometric's readout adds up, for gaps too.
        "qm1b-paper": ModelConfig(
            width=1024, filters=256, interactions=5, gaussians=200, readout="sum"
        ),
    }
)


@dataclass(frozen=True)
class Optimizer:
    """AdamW: a linear warm-up, then a cosine, an exponential decay or a constant rate."""

    learning_rate: float = 5e-4
    """Largest learning rate."""
    weight_decay: float = 1e-4
    """AdamW's weight decay, on matrices only."""
    decay_biases: bool = False
    """Weight decay on biases, too."""
    schedule: Literal["cosine", "exponential", "constant"] = "cosine"
    """The learning rate after the warm-up: a cosine down to --final-fraction, steps of --rate-decay
    every --decay-updates, or no change."""
    warmup_fraction: float = 0.05
    """Fraction of all updates during which the rate rises."""
    warmup_updates: int = 0
    """Updates during which the rate rises, instead of the fraction; 0 for the fraction."""
    warmup_start: float = 0.0
    """Learning rate of the first update, as a fraction of the largest; 0 for an even rise."""
    final_fraction: float = 0.01
    """Learning rate at the end of the cosine, as a fraction of the largest."""
    rate_decay: float = 0.96
    """For --schedule exponential: factor of the learning rate."""
    decay_updates: int = 10_000
    """For --schedule exponential: updates between two decays."""
    clip: float = 1.0
    """Largest norm of the gradient; a longer one is scaled down to it; 0 for no limit."""
    ema: float = 0.999
    """Decay of the averaged weights, which are validated and kept; 0 for no averaging."""
    loss: Literal["l1", "huber", "mse"] = "l1"
    """Loss of an error in units of the target's standard deviation; huber turns from quadratic to
    linear at 1."""
    forces_weight: float = 10.0
    """For targets with forces: weight of the loss of a component of the forces, in the same unit
    per Bohr, beside 1 for that of the energy of a molecule."""

    @property
    def is_planned(self) -> bool:
        """Whether the learning rate depends on how long the training is to be."""
        return self.schedule == "cosine" or (self.warmup_fraction > 0 and not self.warmup_updates)

    def check(self) -> None:
        """Raise UserError for values that cannot train."""
        if not (self.learning_rate > 0 and self.clip >= 0 and self.weight_decay >= 0):
            raise UserError(
                "--learning-rate must be positive, --clip and --weight-decay must not be negative"
            )
        if self.warmup_updates < 0 or self.decay_updates < 1:
            raise UserError("--warmup-updates must not be negative, --decay-updates at least 1")
        if not (0 <= self.warmup_start <= 1 and 0 < self.rate_decay <= 1):
            raise UserError(
                "--warmup-start must be from 0 to 1, --rate-decay above 0 and at most 1"
            )
        if not (0 <= self.ema < 1 and 0 <= self.warmup_fraction < 1):
            raise UserError("--ema and --warmup-fraction must be at least 0 and below 1")
        if not 0 <= self.forces_weight < math.inf:
            raise UserError(
                f"--forces-weight {self.forces_weight}: give 0 or more; --target energy learns no "
                "forces at all"
            )
        if not 0 <= self.final_fraction <= 1:
            raise UserError(f"--final-fraction {self.final_fraction}: give a number from 0 to 1")


@dataclass(frozen=True)
class Schedule:
    """How long to train, and on which part of the machine."""

    max_epochs: int = 100
    """Passes over the training set; the learning rate is planned over them."""
    max_examples: int = 0
    """Stop after this many training rows, each counted as often as it is seen, with a validation at
    the end; 0 for no limit. The learning rate is planned up to there."""
    max_minutes: float = 0.0
    """Stop after this many minutes, whatever the learning rate is then; 0 for no limit. The same
    command resumes the training."""
    valid_every: int = 1
    """Number of epochs between validations; the last epoch always has one. Raise it if the training
    set is so small that an epoch takes less time than a validation."""
    pack_molecules: int = 32
    """Mean number of molecules per pack."""
    accumulation: int = 1
    """Packs per device and update (gradient accumulation)."""
    iterations: int = 1
    """Updates per call of the compiled step (device iterations)."""
    devices: int = 0
    """Devices that share the packs of an update (replication factor); 0 for all."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision of the layers; weights, distances and sums stay in float32. float16, as on an IPU,
    scales the loss so that gradients neither vanish nor overflow."""
    stochastic_rounding: bool = False
    """With float16: weights have that precision, too; an update rounds each up or down at random,
    so that it is right in the mean."""
    checkpoint_minutes: float = 10.0
    """Minutes between checkpoints within an epoch; there is also one after every epoch."""
    window_rows: int = 200_000
    """Rows in memory; a larger training set is shuffled in windows of this size."""

    def check(self) -> None:
        """Raise UserError for values that cannot run."""
        _at_least(1, self, "max_epochs", "valid_every", "pack_molecules")
        _at_least(1, self, "accumulation", "iterations", "window_rows")
        if self.stochastic_rounding and self.precision != "float16":
            raise UserError(
                f"--stochastic-rounding is for --precision float16, not {self.precision}: give "
                "that too, or leave it out"
            )
        if not (self.max_minutes >= 0 and min(self.devices, self.max_examples) >= 0):
            raise UserError("--max-minutes, --max-examples and --devices must not be negative")
        if not self.checkpoint_minutes > 0:
            raise UserError("--checkpoint-minutes must be positive")


PAPER = "qm1b-paper"
"""The preset of a whole training: the network of `schnet-9m`, and what follows."""

PAPER_OPTIMIZER = Optimizer(
    # From the trainer beside arXiv:2311.01135. It counts calls of 32 updates: a warm-up of 2,500
    # calls from a fifth of the rate, and 4 % less after every 9,600 calls.
    learning_rate=5e-4,
    weight_decay=1e-2,  # the default of its AdamW
    decay_biases=True,
    schedule="exponential",
    warmup_updates=2_500 * 32,
    warmup_start=0.2,
    rate_decay=0.96,
    decay_updates=9_600 * 32,
    clip=0.0,
    ema=0.0,
    loss="l1",
)
PAPER_SCHEDULE = Schedule(
    # 16 replicas with packs of seven molecules make an update; a billion rows in all.
    max_epochs=1_000_000,
    max_examples=1_000_000_000,
    pack_molecules=7,
    accumulation=16,
    devices=1,
)


def _at_least(least: int, settings: ModelConfig | Schedule, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if value < least:
            raise UserError(f"--{name.replace('_', '-')} {value}: give {least} or more")


def preset(name: str) -> ModelConfig:
    """The model of a preset; raises UserError for an unknown name."""
    if name not in PRESETS:
        raise UserError(f"preset {name!r} is not known; allowed are {', '.join(PRESETS)}")
    return PRESETS[name]


def readout_for(model: ModelConfig, target: Target) -> ModelConfig:
    """The model with the readout that suits a target: energies are sums over atoms, orbital
    energies do not grow with the molecule, a dipole moment is a vector."""
    if target.quantity == "dipole":
        return replace(model, readout="dipole")
    return replace(model, readout="sum" if target.extensive else "mean")
