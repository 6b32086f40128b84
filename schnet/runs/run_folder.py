"""The folder of a run: its record (`run.json`, `config.yaml`), checkpoints, logs and pictures."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import equinox as eqx
import jax

from qm1b.folder.manifest.versions import package_versions
from qm1b.storage.files import write_text
from qm1b.storage.lock import locked
from schnet.errors import UserError
from schnet.network.config import ModelConfig
from schnet.network.model import SchNet
from schnet.network.predictor import Predictor
from schnet.runs import checkpoint
from schnet.runs.settings import TrainSettings, flat, structured, write_yaml
from schnet.samples.references import AtomReferences
from schnet.samples.targets import Target, target_of

PACKAGES = ("pyscf-ipu", "jax", "jaxlib", "equinox", "optax", "numpy")
FORMAT = 1


class RunRecord(TypedDict):
    """The fields of run.json that are read; `settings` and `data` only after a training here."""

    target: str
    target_unit: str
    model: dict[str, object]
    references: dict[str, object]
    settings: NotRequired[dict[str, object]]
    data: NotRequired[dict[str, dict[str, object]]]


class RunFolder:
    """The files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.json = path / "run.json"
        self.last = path / "last.ckpt"
        self.best = path / "best.ckpt"
        self.log = path / "log.csv"
        self.tensorboard = path / "tensorboard"
        self.learning_curve = path / "learning_curve.png"
        self.parity = path / "parity.png"
        self.predictions = path / "test_predictions.csv"
        self.results = path / "results.json"
        self.price = path / "price.json"

    def describe(self) -> RunRecord:
        """Read `run.json`; raises UserError if this is not a run."""
        try:
            record = json.loads(self.json.read_text())
        except FileNotFoundError:
            raise UserError(
                f"{self.path} is not a run of schnet: it has no {self.json.name}; give the --out "
                "of `schnet train` or `schnet import-pyg`"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{self.json} cannot be read ({error})") from None
        lacking = RunRecord.__required_keys__ - set(getattr(record, "keys", tuple)())
        if lacking:
            raise UserError(f"{self.json} is damaged: it lacks {', '.join(sorted(lacking))}")
        if record.get("format") != FORMAT:
            raise UserError(
                f"{self.json} is of format {record.get('format')}, not {FORMAT}: use the version "
                "of schnet that wrote it, or train again"
            )
        return record

    def write(self, record: Mapping[str, object]) -> None:
        """Write `run.json`."""
        write_text(self.json, json.dumps({"format": FORMAT, **record}, indent=2) + "\n")

    def start(self, settings: TrainSettings, record: Mapping[str, object]) -> None:
        """Make the folder of a training, or `refuse_other`; raises UserError if that fails."""
        if self.json.exists() and self.refuse_other(settings, record):
            return
        self.make()
        write_yaml(self.config, settings)
        self.write(record)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other trainings out of it; raises UserError if one is in it."""
        self.make()
        with locked(self.path):
            yield

    def make(self) -> None:
        """Make the folder, unless it exists; raises UserError if that fails."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"folder {self.path} cannot be made: {error.strerror}") from None

    def refuse_other(self, settings: TrainSettings, record: Mapping[str, object]) -> bool:
        """Raise UserError if other settings or data made the folder; returns whether the same did.

        The number of epochs may change, unless the learning rate is planned over them.
        """
        lines = differences(self.describe(), json.loads(json.dumps(record)))
        epochs = len(lines) == 1 and lines[0].startswith("--max-epochs")
        if not lines or (epochs and not settings.optimizer.is_planned):
            return not lines
        then = f"Take another --out, or resume it as it is: `schnet train --out {self.path}`."
        if epochs:
            then += (
                " The learning rate is planned over the epochs: to train on from the best weights, "
                f"with a new plan, `schnet train --config {self.config} --init {self.path} "
                f"--max-epochs {settings.schedule.max_epochs} --out {self.path}-more`."
            )
        shown = "".join(f"  {line}\n" for line in lines)
        raise UserError(f"{self.path} was made with other settings or data:\n{shown}{then}")

    def predictor(self, which: Path | None = None) -> Predictor:
        """The network of a checkpoint, by default the best one, ready to predict.

        Raises:
            UserError: this is not a run, or it has no checkpoint yet.
        """
        record, path = self.describe(), which or self.best
        if not path.exists():
            raise UserError(f"{path} does not exist yet: let `schnet train` finish one epoch")
        config = structured(record["model"], ModelConfig, self.json)
        references = AtomReferences.from_dict(record["references"])
        return Predictor(
            network(path, config), config, references, target=target_of(record["target"])
        )

    def target(self) -> Target:
        """The target of the run's network."""
        return target_of(self.describe()["target"])


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Where two records of trainings differ: in the options that were given, else in the data.

    Options that follow from others are not named, nor what options mean for the data.
    """
    old, new = (flat(one.get("settings", {})) for one in (there, here))
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    if "rows.target" in names:
        names = [name for name in names if name != "model.readout"]
    if names:
        options = {name: f"--{name.split('.')[-1].replace('_', '-')}" for name in names}
        return [f"{options[k]}: there {old.get(k)!r}, here {new.get(k)!r}" for k in names]
    changed: dict[str, list[str]] = {}
    data, other = there.get("data", {}), here.get("data", {})
    for side in dict.fromkeys([*data, *other]):
        if data.get(side) != other.get(side):
            path = str((other.get(side) or data[side]).get("data", "the data"))
            changed.setdefault(path, []).append(side)
    return [f"{path} has changed ({', '.join(sides)})" for path, sides in changed.items()]


def network(path: Path, config: ModelConfig) -> SchNet:
    """The network in a checkpoint of weights; raises as `checkpoint.load`."""
    model, _ = checkpoint.load(path, eqx.filter_eval_shape(SchNet, config, jax.random.key(0)))
    return model


def description(
    target: Target, model: ModelConfig, references: AtomReferences, origin: Mapping[str, object]
) -> dict[str, object]:
    """The content of `run.json` for a network of this origin."""
    return {
        "target": target.name,
        "target_unit": target.unit,
        "model": asdict(model),
        "references": references.to_dict(),
        **origin,
        "versions": package_versions(PACKAGES),
    }
