"""`schnet train`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal

import tyro

from qm1b.commands.calling import EXIT_INTERRUPTED
from qm1b.interrupts import interrupts

from ..config import PRESETS, ModelConfig, Optimizer, Schedule, readout_for
from ..errors import UserError
from ..settings import Data, TrainSettings, mentions, read_yaml
from ..targets import target_of


@dataclass(frozen=True)
class Model:
    """Sizes of the network; what is not given is the preset's, or that of --config or --init."""

    preset: Literal["small", "schnet-9m"] | None = None
    """Size of the network: one for a laptop (taken if nothing is given), or that of the QM1B
    paper."""
    width: int | None = None
    """Features of an atom."""
    filters: int | None = None
    """Features of a pair of atoms."""
    interactions: int | None = None
    """Interaction blocks."""
    gaussians: int | None = None
    """Gaussians that describe a distance."""
    cutoff_bohr: float | None = None
    """Atoms farther apart do not hear each other."""
    neighbours: int | None = None
    """An atom hears at most so many others, the nearest."""
    readout: Literal["sum", "mean", "dipole"] | None = None
    """How atoms become a molecule; if not given, energies are a sum, orbital energies a mean."""

    def over(self, base: ModelConfig) -> ModelConfig:
        """A network with what was given."""
        names = [f.name for f in fields(self) if f.name != "preset"]
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(base, **given)


@dataclass(frozen=True)
class Processes:
    """Several processes, on one machine or more, that train together; each is started by itself
    with the same options but its --process."""

    coordinator: str | None = None
    """HOST:PORT of the first process, the same for all; `auto` under Slurm or MPI."""
    processes: int = 1
    """How many there are."""
    process: int = 0
    """Number of this one, from 0; the first writes the folder, which all must see."""

    def join(self) -> None:
        """Wait for the others, if there are any; raises UserError for what cannot be joined."""
        if self.coordinator is None:
            if self.processes != 1 or self.process != 0:
                raise UserError("--processes and --process need --coordinator HOST:PORT.")
            return
        import jax

        if self.coordinator == "auto":
            jax.distributed.initialize()
            return
        if not 0 <= self.process < self.processes:
            raise UserError(f"--process {self.process} is not one of {self.processes}, from 0.")
        jax.distributed.initialize(self.coordinator, self.processes, self.process)


@dataclass(frozen=True)
class Train:
    """Train SchNet, or go on with a training that was stopped."""

    out: Path
    """Folder of the run; one that is there already is gone on with."""
    rows: Data = field(default_factory=Data)
    model: Model = field(default_factory=Model)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    several: Processes = field(default_factory=Processes)
    config: Path | None = None
    """YAML file of settings, such as the config.yaml of a run; options on the command line win."""
    init: Path | None = None
    """Run folder or checkpoint whose weights to start from (fine-tuning)."""
    seed: int = 0
    """Of the first weights and of the order of rows."""
    quiet: bool = False
    """Print only the result."""
    base: tyro.conf.Suppress[ModelConfig | None] = None
    """The network in the file of settings, if it has one."""
    base_target: tyro.conf.Suppress[str | None] = None
    """The target for which the file says the readout, if it does."""

    def settings(self) -> TrainSettings:
        """What the training is."""
        return TrainSettings(
            self.rows, self.network(), self.optimizer, self.schedule, self.init, self.seed
        )

    def network(self) -> ModelConfig:
        """That of --preset, else of the file of settings, else of --init, else the small one; with
        the readout that suits the target unless it was made for such a target, and with what else
        was given."""
        from ..preparing import network_of

        target = target_of(self.rows.target)
        base, made_for = PRESETS[self.model.preset or "small"], None
        if self.model.preset is None:
            if self.base is not None:
                base, made_for = self.base, self.base_target
            elif self.init is not None:
                base, made_for = network_of(self.init)
        if made_for is None or not target.is_like(target_of(made_for)):
            base = readout_for(base, target)
        return self.model.over(base)

    def __call__(self) -> int:
        """Run it; returns the exit code."""
        self.several.join()  # before anything asks JAX for its devices
        from ..run import train

        with interrupts() as interrupt:
            end = train(self.settings(), self.out, interrupt, quiet=self.quiet)
        return EXIT_INTERRUPTED if end == "interrupted" else 0


def with_config(arguments: Sequence[str]) -> Train | None:
    """The defaults of `schnet train`, from the file after `--config`, or of a run in `--out`.

    Raises:
        UserError: the file cannot be read.
    """
    if not arguments or arguments[0] != "train" or {"-h", "--help"} & {*arguments}:
        return None
    path = _after("--config", arguments)
    out = _after("--out", arguments)
    if path is None and out is not None and _after("--data", arguments) is None:
        path = str(Path(out) / "config.yaml")
        if not Path(path).exists():
            raise UserError("no data to train on: give --data FILE_OR_FOLDER.")
    if path is None:
        return None
    if out is None:
        raise UserError("give --out FOLDER for the run.")
    found = read_yaml(Path(path), TrainSettings())
    return Train(
        out=Path(out),
        rows=found.rows,
        optimizer=found.optimizer,
        schedule=found.schedule,
        config=Path(path),
        init=found.init,
        seed=found.seed,
        base=found.model if mentions(Path(path), "model") else None,
        base_target=found.rows.target if mentions(Path(path), "model", "readout") else None,
    )


def _after(option: str, arguments: Sequence[str]) -> str | None:
    for i, word in enumerate(arguments):
        if word == option and i + 1 < len(arguments):
            return arguments[i + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None
