"""`schnet train`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from pyscf_ipu.base.command_line.given_words import given_options
from pyscf_ipu.base.command_line.parse import command
from pyscf_ipu.base.terminal import EXIT_INTERRUPTED
from qm1b.process.interrupts import interrupts
from schnet.errors import UserError
from schnet.network.config import PAPER, PAPER_OPTIMIZER, PAPER_SCHEDULE, PRESETS, readout_for
from schnet.runs.settings import TrainSettings, read_yaml
from schnet.samples.targets import Target, target_of


@dataclass(frozen=True)
class Processes:
    """Several processes, on one machine or more, that train together; start each one with the same
    options but its own --process."""

    coordinator: str | None = None
    """HOST:PORT of the first process, the same for all; `auto` under Slurm or MPI."""
    processes: int = 1
    """Number of processes."""
    process: int = 0
    """Number of this process, from 0. Process 0 writes the run folder, which all must be able to
    read."""

    def join(self) -> None:
        """Wait for the other processes.

        Raises:
            UserError: the options contradict each other.
        """
        if self.coordinator is None:
            if self.processes != 1 or self.process != 0:
                raise UserError("--processes and --process need --coordinator HOST:PORT")
            return
        import jax

        if self.coordinator == "auto":
            jax.distributed.initialize()
            return
        if not 0 <= self.process < self.processes:
            raise UserError(
                f"--process is {self.process}: with --processes {self.processes}, give 0 to "
                f"{self.processes - 1}"
            )
        jax.distributed.initialize(self.coordinator, self.processes, self.process)


@dataclass(frozen=True, kw_only=True)
class Train(TrainSettings):
    """Train SchNet, or resume a training that was stopped."""

    stdout_is_log: ClassVar = True

    out: Path
    """Folder of the run; a training in it is resumed."""
    preset: Literal["small", "schnet-9m", "qm1b-paper"] | None = None
    """Size of the network: small for a laptop (the default), or that of the QM1B paper (schnet-9m).
    qm1b-paper also sets all else as the paper's trainer did: optimizer, learning rate, batches, a
    billion examples, targets in eV. Single options still override it."""
    distributed: Processes = field(default_factory=Processes)
    config: Path | None = None
    """YAML file of settings, such as the config.yaml of a run; command-line options override it."""
    price: str | None = None
    """Also price an update on a simulated system of IPUs, such as bow-pod16, into price.json."""
    quiet: bool = False
    """Print only the result."""

    def __call__(self) -> int:
        """Run the command; returns the exit code."""
        if self.price is not None:
            from pyscf_ipu.ipu import priced_target

            priced_target(self.price)  # refuses an unknown one
        self.distributed.join()  # before anything asks JAX for its devices
        from schnet.commands.jobs import train

        with interrupts() as interrupt:
            end = train(
                self.settings(), self.out, interrupt, quiet=self.quiet, system=self.price or ""
            )
        return EXIT_INTERRUPTED if end == "interrupted" else 0

    def settings(self) -> TrainSettings:
        """The settings of the training, without the options of the command."""
        return TrainSettings(**{f.name: getattr(self, f.name) for f in fields(TrainSettings)})


def from_command_line(arguments: Sequence[str]) -> Train:
    """The command of these arguments; what they leave open is taken from a file of settings.

    The file is that of --config, or that of the run in --out if there is no --data. The network is
    that of --preset, else of the file, else of --init, else the small one. A readout of the file or
    of --init is kept if it was made for a target of the same kind; otherwise the target decides.

    Raises:
        UserError: there is no data, or the file or --init cannot be used.
    """
    parse = partial(command, Train, "schnet train", arguments)
    train = parse()
    file, sizes = train.config, None
    if file is None and not train.rows.data:
        file = train.out / "config.yaml"
        if not file.exists():
            raise UserError("no data to train on: give --data FILE_OR_FOLDER")
    base, made_for = PRESETS[train.preset or "small"], None
    if file is not None:
        settings = read_yaml(file, TrainSettings)
        sizes = read_yaml(file, dict).get("model")
        train = parse(default=Train(out=train.out, **vars(settings)))
        if train.preset is None and sizes:
            base, made_for = settings.model, settings.rows.target if "readout" in sizes else None
    if train.preset is None and train.init is not None and not sizes:
        from schnet.training.prepare import network_of

        base, made_for = network_of(train.init)
    if train.preset == PAPER:
        rows = replace(train.rows, scaling="none")
        train = replace(train, rows=rows, optimizer=PAPER_OPTIMIZER, schedule=PAPER_SCHEDULE)
        train = parse(default=train)
        made_for = train.rows.target if train.rows.target != "dipole_norm" else None
    target = target_of(train.rows.target)
    _check_forces_weight(arguments, target)
    if made_for is None or not target.is_like(target_of(made_for)):
        base = readout_for(base, target)
    return parse(default=replace(train, model=base))


def _check_forces_weight(arguments: Sequence[str], target: Target) -> None:
    """Refuse an option that would be ignored; in a file of settings it may stand for other runs."""
    if "forces_weight" in given_options(arguments) and not target.has_forces:
        raise UserError(
            f"--forces-weight is for --target forces+energy or forces+atomisation_energy: --target "
            f"{target.name} learns no forces; leave one of them out"
        )
