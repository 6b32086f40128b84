"""From settings to everything that a training needs: rows, references, packs, weights, the rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from . import checkpoint
from .batches import Batches, histogram
from .config import ModelConfig, readout_for
from .errors import UserError
from .folder import RunFolder, description
from .model import SchNet
from .optimizer import learning_rate, optimizer
from .pack import Graphs
from .packing import shape_for
from .references import AtomReferences, Totals
from .settings import TrainSettings
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


def prepare(settings: TrainSettings) -> Prepared:
    """Read the training rows once: their references, sizes and number.

    Raises:
        UserError: settings, data or devices are not what they should be.
    """
    target = target_of(settings.rows.target)
    settings.check()
    devices = _devices(settings.schedule.devices)
    rows = settings.rows
    sides = subsets(
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
    totals, sizes = Totals(), Counter[int]()
    for samples in sides["train"].parts():
        totals.add(samples)
        sizes += histogram(iter([samples]))
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
    about = description(
        settings,
        references,
        data={name: sides[name].describe() for name in SIDES},
        train_rows=totals.n,
        dropped={name: dict(sides[name].source.dropped) for name in SIDES},
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


def fitting_model(settings: TrainSettings) -> TrainSettings:
    """The settings with the readout that suits the target, or the network of `init`."""
    if settings.init is not None:
        source = RunFolder(_folder(settings.init)).describe()
        return replace(settings, model=ModelConfig(**source["model"]))
    return replace(settings, model=readout_for(settings.model, target_of(settings.rows.target)))


def pretrained(path: Path, config: ModelConfig) -> SchNet:
    """The weights of another run: the best ones of a folder, or those of a checkpoint.

    Raises:
        UserError: nothing there, or of another network.
    """
    best = RunFolder(path).best if path.is_dir() else path
    model, _ = checkpoint.load(best, eqx.filter_eval_shape(SchNet, config, jax.random.key(0)))
    return model


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _devices(wanted: int) -> Mesh:
    there = jax.device_count()
    if wanted > there:
        raise UserError(f"--devices is {wanted}, but there are {there}: give 1 to {there}, or 0.")
    if jax.process_count() > 1 and wanted not in (0, there):
        raise UserError(
            f"with several processes all {there} devices are used: leave --devices out."
        )
    return mesh(wanted or there)
