"""The folder of a run: what it is (`run.json`, `config.yaml`), checkpoints, logs, pictures."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from qm1b.manifest import package_versions
from qm1b.store import atomic_write

from . import checkpoint
from .config import ModelConfig
from .errors import UserError
from .model import SchNet
from .predictor import Predictor
from .references import AtomReferences
from .settings import TrainSettings, flat, write_yaml
from .targets import Target, target_of

PACKAGES = ("pyscf-ipu", "jax", "jaxlib", "equinox", "optax", "numpy")
FORMAT = 1


class RunFolder:
    """Names of a run's files, and what stands in them."""

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

    def describe(self) -> dict[str, Any]:
        """What `run.json` says; raises UserError if this is no run."""
        try:
            found = json.loads(self.json.read_text())
        except FileNotFoundError:
            raise UserError(
                f"{self.path} is no run of schnet: it has no {self.json.name}; give the --out of "
                "`schnet train` or `schnet import-pyg`."
            ) from None
        except (OSError, ValueError) as error:
            raise UserError(f"{self.json} cannot be read ({error}).") from None
        if found.get("format") != FORMAT:
            raise UserError(f"{self.json} is of format {found.get('format')}, not {FORMAT}.")
        return found

    def write(self, description: dict[str, Any]) -> None:
        """Write `run.json`."""
        text = json.dumps({"format": FORMAT} | description, indent=2) + "\n"
        atomic_write(self.json, lambda stream: stream.write(text.encode()))

    def start(self, settings: TrainSettings, description: dict[str, Any]) -> None:
        """Make the folder, unless it is there already.

        Raises:
            UserError: other settings or data made the folder, or it cannot be made.
        """
        if self.json.exists():
            self.refuse_other(description)
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_yaml(self.config, settings)
        except OSError as error:
            raise UserError(f"folder {self.path} cannot be made: {error.strerror}.") from None
        self.write(description)

    def refuse_other(self, description: dict[str, Any]) -> None:
        """Raise UserError if other settings or data made the folder."""
        there = self.describe()
        keys = ("settings", "data")
        old = flat({key: there.get(key, {}) for key in keys})
        new = flat(json.loads(json.dumps({key: description[key] for key in keys})))
        names = [k for k in dict.fromkeys([*old, *new]) if old.get(k) != new.get(k)]
        if names:
            lines = "\n".join(f"  {k}: there {old.get(k)!r}, here {new.get(k)!r}" for k in names)
            raise UserError(
                f"{self.path} was made with other settings or data:\n{lines}\nTake another --out, "
                "or the settings of its config.yaml (`schnet train --config ... --out ...`)."
            )

    def predictor(self, which: Path | None = None) -> Predictor:
        """The network of a checkpoint, the best one unless said otherwise, ready to predict.

        Raises:
            UserError: no run, or no checkpoint yet.
        """
        found = self.describe()
        config = ModelConfig(**found["model"])
        path = which or self.best
        if not path.exists():
            raise UserError(f"{path} is not there yet: let `schnet train` finish one epoch.")
        references = AtomReferences.from_dict(found["references"])
        return Predictor(network(path, config), config, references, self.target(found))

    def target(self, found: dict[str, Any] | None = None) -> Target:
        """What the run's network predicts."""
        return target_of((found or self.describe())["target"])


def network(path: Path, config: ModelConfig) -> SchNet:
    """The network in a checkpoint of weights; raises as `checkpoint.load`."""
    model, _ = checkpoint.load(path, eqx.filter_eval_shape(SchNet, config, jax.random.key(0)))
    return model


def description(settings: TrainSettings, references: AtomReferences, **more: Any) -> dict[str, Any]:
    """What `run.json` says at the start of a training."""
    return {
        "target": settings.rows.target,
        "target_unit": target_of(settings.rows.target).unit,
        "model": asdict(settings.model),
        "references": references.to_dict(),
        "settings": settings.decisive(),
        "versions": package_versions(PACKAGES),
        **more,
    }
