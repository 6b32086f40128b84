"""SchNet trained on datasets of `qm1b` and others: the `schnet` command, and the same in Python::

    import schnet

    predictor = schnet.RunFolder(Path("runs/gap")).predictor()
    for samples in schnet.open_source("my.smi", None).parts():
        print(predictor(samples))  # hartree

The names in `__all__` are public; everything else in this package is private and may change.
Importing the package imports neither JAX nor ASE: each name is imported when it is first used.
"""

from typing import TYPE_CHECKING

from pyscf_ipu.base.lazy import lazy

if TYPE_CHECKING:
    from qm1b.process.interrupts import Interrupt
    from schnet.commands.jobs import evaluate, train
    from schnet.errors import UserError
    from schnet.network.config import ModelConfig, Optimizer, Schedule, preset
    from schnet.network.model import SchNet
    from schnet.network.predictor import Predictor
    from schnet.runs.calculator import SchNetCalculator
    from schnet.runs.run_folder import RunFolder
    from schnet.runs.settings import Data, TrainSettings
    from schnet.samples.accuracy import Errors, ForceErrors, Predicted
    from schnet.samples.samples import Sample, Samples
    from schnet.samples.targets import Target, target_of
    from schnet.sources import Source, open_source

_NAMES = {
    "qm1b.process.interrupts": "Interrupt",
    ".runs.calculator": "SchNetCalculator",
    ".commands.jobs": "evaluate train",
    ".errors": "UserError",
    ".network.config": "ModelConfig Optimizer Schedule preset",
    ".network.model": "SchNet",
    ".network.predictor": "Predictor",
    ".runs.run_folder": "RunFolder",
    ".runs.settings": "Data TrainSettings",
    ".samples.accuracy": "Errors ForceErrors Predicted",
    ".samples.samples": "Sample Samples",
    ".samples.targets": "Target target_of",
    ".sources": "Source open_source",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Data",
    "Errors",
    "ForceErrors",
    "Interrupt",
    "ModelConfig",
    "Optimizer",
    "Predicted",
    "Predictor",
    "RunFolder",
    "Sample",
    "Samples",
    "SchNet",
    "SchNetCalculator",
    "Schedule",
    "Source",
    "Target",
    "TrainSettings",
    "UserError",
    "evaluate",
    "open_source",
    "preset",
    "target_of",
    "train",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
