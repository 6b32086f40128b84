"""From settings to everything that a training needs: rows, references, packs, weights, the rule."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import jax
from jax.sharding import Mesh

from pyscf_ipu.base.terminal import counted
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.elements.spellings import SYMBOLS
from schnet.errors import UserError
from schnet.network.config import ModelConfig
from schnet.network.model import SchNet
from schnet.network.pack import Graphs
from schnet.network.packing import shape_for
from schnet.runs.run_folder import RunFolder, description, network
from schnet.runs.settings import TrainSettings, structured
from schnet.samples.references import AtomReferences, Totals
from schnet.samples.targets import Target, target_of
from schnet.sources.splitting import SIDES, parse_split
from schnet.training.batches import Batches
from schnet.training.step import mesh
from schnet.training.streaming import RowStream
from schnet.training.subset import Subset, subsets


@dataclass(frozen=True, eq=False)
class Prepared:
    """A training before its first update."""

    settings: TrainSettings
    """With the number of devices."""
    sides: Mapping[str, Subset]
    """Training, validation and test rows."""
    rows: int
    """Number of training rows."""
    references: AtomReferences
    batches: Batches
    packs: int
    """Packs per epoch, approximately."""
    updates: int
    """Updates per epoch, approximately."""
    devices: Mesh
    doubts: tuple[str, ...] = ()
    """What the training rows do not suffice for, one sentence each without a full stop."""

    @property
    def target(self) -> Target:
        """The property that is learned."""
        return target_of(self.settings.rows.target)

    @property
    def dropped(self) -> dict[str, dict[str, int]]:
        """Why rows of each file were dropped, and how many."""
        sources = dict.fromkeys(self.sides[name].source for name in SIDES)
        return {str(source.path): dict(source.dropped) for source in sources}

    @property
    def planned_updates(self) -> int:
        """Updates up to the last epoch or example, over which the learning rate is planned."""
        schedule = self.settings.schedule
        every = self.updates * schedule.max_epochs
        if not schedule.max_examples:
            return every
        return min(every, -(-self.updates * schedule.max_examples // max(self.rows, 1)))

    @cached_property
    def description(self) -> dict[str, object]:
        """The content of `run.json`."""
        settings = {"settings": self.settings.decisive()}
        return description(self.target, self.settings.model, self.references, origin=settings) | {
            "data": {name: self.sides[name].describe() for name in SIDES},
            "train_rows": self.rows,
            "dropped": self.dropped,
            "pack": self.batches.shape._asdict(),
            "updates_per_epoch": self.updates,
        }

    def first_model(self) -> SchNet:
        """The weights to start from; raises UserError if those of `init` have other sizes."""
        config, init = self.settings.model, self.settings.init
        if init is None:
            return SchNet(config, jax.random.key(self.settings.seed))
        return network(RunFolder(init).best if init.is_dir() else init, config)


def prepare(settings: TrainSettings) -> Prepared:
    """Read the training rows once, for their references, sizes and number; raises UserError for
    unusable settings, data or devices."""
    target = target_of(settings.rows.target)
    settings.check()
    devices = _devices(settings.schedule.devices)
    sides = subsets(settings.rows)
    totals, sizes = Totals(), Counter[int]()
    for samples in sides["train"].parts():
        totals.add(samples)
        sizes.update(samples.sizes.tolist())
    references = AtomReferences.fit(totals, target.extensive)
    zeros = dict.fromkeys(SYMBOLS, 0.0) if target.number == "atomisation_energy" else {}
    references = references.nearest_to(zeros or sides["train"].source.free_atoms)
    if settings.rows.scaling == "none":
        unit = 1.0 if target.quantity == "dipole" else 1 / HARTREE_TO_EV
        references = AtomReferences.none(totals.elements, unit)
    if settings.model.readout == "dipole":  # a length has no place for a constant
        references = replace(references, constant=0.0)
    # On another number of devices a place in an epoch means other rows.
    schedule = replace(settings.schedule, devices=devices.size)
    graphs = Graphs(settings.model.cutoff_bohr, settings.model.neighbours)
    batches = Batches(
        stream=RowStream(sides["train"], schedule.window_rows, settings.seed, rows=totals.n),
        shape=shape_for(sizes, graphs, schedule.pack_molecules),
        graphs=graphs,
        references=references,
        lead=(schedule.iterations, devices.size, schedule.accumulation),
    )
    packs = batches.expected_packs(sizes)
    # Read the other sides too, so that a damaged file shows before the training and not after it.
    for name in ("valid", "test"):
        if sides[name].source is not sides["train"].source:
            deque(sides[name].source.parts(), maxlen=0)
    return Prepared(
        settings=replace(
            settings, schedule=schedule, rows=replace(settings.rows, target=target.name)
        ),
        sides=sides,
        rows=totals.n,
        references=references,
        batches=batches,
        packs=packs,
        updates=batches.expected_updates(packs),
        devices=devices,
        doubts=(*_doubts(settings, totals.n, references), *_mixed(sides)),
    )


def _doubts(settings: TrainSettings, rows: int, references: AtomReferences) -> Iterator[str]:
    if references.undetermined:
        rest = "free atoms are used, and predictions that rest on them say so"
        if not references.from_free_atoms:
            rest = "without free atoms in the data, other compositions get no prediction"
        yield (
            f"{counted(rows, 'training row')} of {len(references.elements)} elements do not "
            f"determine the references of {', '.join(references.open_elements)} (*): {rest}"
        )
    parts = parse_split(settings.rows.split)
    share = parts[1] if isinstance(parts, tuple) else parts.valid
    if not share and not settings.rows.valid_data:
        yield "there are no validation rows: the weights of the last epoch count as the best"


def _mixed(sides: Mapping[str, Subset]) -> Iterator[str]:
    """Whether some rows are of density fitting and others are not, on any side."""
    sources = dict.fromkeys(side.source for side in sides.values())
    forms = sum((source.fitted for source in sources), Counter())
    if len(forms) > 1:
        yield (
            f"{counted(forms[True], 'row')} of the data have density fitting (their jk is ri) and "
            f"{counted(forms[False], 'row')} have not: the difference between the two is learned "
            "as if it were the molecules'; give data of one kind, from `qm1b generate --jk exact` "
            "or `--jk ri`"
        )


def network_of(path: Path) -> tuple[ModelConfig, str]:
    """The size of another run's network, and the name of its target; raises UserError if `path` is
    neither a run nor a checkpoint in one."""
    folder = RunFolder(path.parent if path.is_file() else path)
    record = folder.describe()
    return structured(record["model"], ModelConfig, folder.json), record["target"]


def _devices(wanted: int) -> Mesh:
    total = jax.device_count()
    if wanted > total:
        raise UserError(f"--devices is {wanted}, but there are {total}: give 1 to {total}, or 0")
    if jax.process_count() > 1 and wanted not in (0, total):
        raise UserError(f"with several processes all {total} devices are used: leave --devices out")
    return mesh(wanted or total)
