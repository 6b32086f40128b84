"""Options of small trainings, shared by the tests of the command."""

import numpy as np
from packs import QM9

from schnet.cli import main
from schnet.runs.run_folder import RunFolder

SIZE = ["--width", "8", "--filters", "8", "--interactions", "1", "--gaussians", "8"]
BASE = ["--data", str(QM9), "--split", "40,10,10", *SIZE, "--pack-molecules", "8"]
RUN = ["--max-epochs", "3", "--valid-every", "2", "--learning-rate", "0.01"]


def train(out, *more):
    """Train as BASE says, but for the options in `more`."""
    base = [*BASE, "--out", str(out), "--quiet"]
    for option in set(more) & {"--data", "--split", *SIZE[::2], "--pack-molecules"}:
        at = base.index(option)
        del base[at : at + 2]
    return main(["train", *base, *more])


def weights_of(path):
    model = RunFolder(path).predictor(RunFolder(path).best).model
    return np.asarray(model.embedding), np.asarray(model.out_2.weight)
