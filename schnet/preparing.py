"""From settings to everything that a training needs: rows, references, packs, weights, the rule."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from .batches import Batches
from .config import ModelConfig
from .errors import UserError
from .folder import RunFolder, description, network
from .model import SchNet
from .optimizer import learning_rate, optimizer
from .pack import Graphs
from .packing import shape_for
from .references import AtomReferences, Totals
from .settings import Data, TrainSettings
from .splitting import SIDES, parse_split
from .step import mesh
from .streaming import Stream
from .subset import Subset, subsets
from .targets import Target, target_of

DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


@dataclass(frozen=True, eq=False)
class Prepared:
    """A training before its first update."""

    settings: TrainSettings
    target: Target
    sides: dict[str, Subset]
    references: AtomReferences
    batches: Batches
    rule: optax.GradientTransformation
    rates: optax.Schedule
    devices: Mesh
    description: dict[str, Any]
    """Of `run.json`."""

    @property
    def dtype(self) -> Any:
        """Of the layers."""
        return DTYPES[self.settings.schedule.precision]

    def first_model(self) -> SchNet:
        """The weights to start from.

        Raises:
            UserError: those of `init` are of another network.
        """
        config = self.settings.model
        if self.settings.init is None:
            return SchNet(config, jax.random.key(self.settings.seed))
        return pretrained(self.settings.init, config)


def sides_of(rows: Data) -> dict[str, Subset]:
    """Training, validation and test rows by name; raises as `subset.subsets`."""
    return subsets(
        rows.data,
        rows.target,
        parse_split(rows.split),
        rows.split_seed,
        valid_data=rows.valid_data or None,
        test_data=rows.test_data or None,
        limit=rows.limit,
        key=rows.key,
        unit=rows.unit,
    )


def prepare(settings: TrainSettings) -> Prepared:
    """Read the training rows once: their references, sizes and number.

    Raises:
        UserError: settings, data or devices are not what they should be.
    """
    target = target_of(settings.rows.target)
    settings.check()
    devices = _devices(settings.schedule.devices)
    sides = sides_of(settings.rows)
    totals, sizes = Totals(), Counter[int]()
    for samples in sides["train"].parts():
        totals.add(samples)
        sizes.update(samples.sizes.tolist())
    references = AtomReferences.fit(totals, target.extensive)
    if settings.model.readout == "dipole":  # a length has no place for a constant
        references = replace(references, constant=0.0)
    schedule = settings.schedule
    graphs = Graphs(settings.model.cutoff_bohr, settings.model.neighbours)
    shape = shape_for(sizes, graphs, schedule.pack_molecules)
    lead = (schedule.iterations, devices.size, schedule.accumulation)
    stream = Stream(sides["train"], schedule.window_rows, settings.seed, totals.n)
    batches = Batches(stream, shape, graphs, references, lead)
    updates = batches.expected_updates(sizes)
    total = updates * schedule.max_epochs
    used = replace(settings, schedule=replace(schedule, devices=devices.size))
    about = description(
        used,  # on another number of devices a place in an epoch means other rows
        references,
        data={name: sides[name].describe() for name in SIDES},
        train_rows=totals.n,
        dropped=_dropped(sides),
        pack={"atoms": shape.atoms, "molecules": shape.molecules, "pairs": shape.pairs},
        updates_per_epoch=updates,
    )
    return Prepared(
        settings,
        target,
        sides,
        references,
        batches,
        optimizer(settings.optimizer, total),
        learning_rate(settings.optimizer, total),
        devices,
        about,
    )


def _dropped(sides: dict[str, Subset]) -> dict[str, dict[str, int]]:
    """Why rows of each file were left out, and how many; all are read now, so that a damaged one
    shows before the training and not after it."""
    found: dict[str, dict[str, int]] = {}
    train = sides["train"].source
    for name in SIDES:
        source = sides[name].source
        if source is not train:
            deque(source.parts(), maxlen=0)
        if source is not train or name == "train":
            found[str(source.path)] = dict(source.dropped)
    return found


def network_of(path: Path) -> tuple[ModelConfig, str]:
    """The size of another run's network and the name of its target; raises UserError if `path` is
    no run nor a checkpoint in one."""
    source = RunFolder(path if path.is_dir() else path.parent).describe()
    return ModelConfig(**source["model"]), source["target"]


def pretrained(path: Path, config: ModelConfig) -> SchNet:
    """The weights of another run: the best ones of a folder, or those of a checkpoint.

    Raises:
        UserError: nothing there, or of another network.
    """
    return network(RunFolder(path).best if path.is_dir() else path, config)


def _devices(wanted: int) -> Mesh:
    there = jax.device_count()
    if wanted > there:
        raise UserError(f"--devices is {wanted}, but there are {there}: give 1 to {there}, or 0.")
    if jax.process_count() > 1 and wanted not in (0, there):
        raise UserError(
            f"with several processes all {there} devices are used: leave --devices out."
        )
    return mesh(wanted or there)
