"""Settings and runs shared by the generator's tests."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # worker processes inherit sys.path and find fake_engine there

from qm1b.generate import Run, generate  # noqa: E402
from qm1b.presets import PRESETS, RunSettings  # noqa: E402

LINES = "O\nC\nCC\n[He]\n[Ne]\nCCl\nC[C\n\n[CH3]\nO\n[Na+].[Cl-]\nCCO\t12\t1\n" + "C" * 60 + "\nP"


def settings(**changes):
    values = {"conformers": 2, "seed": 1, "max_aos": 128, "embed_timeout": 20.0, "unit_rows": 8}
    return RunSettings(level=PRESETS["qm1b"], **(values | changes))


def fake_run(folder, text=LINES, workers=2, factory="fake_engine:Solver", **changes):
    """Fields of `Run` and of `RunSettings` may be changed."""
    source = folder / "input.smi"
    source.write_text(text)
    out = folder / f"out-{workers}"
    how = {name: changes.pop(name) for name in ("share", "other_versions") if name in changes}
    return out, generate(Run(source, out, settings(**changes), workers, factory, **how))


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of the fake engine with everything in it: drops, errors, no convergence."""
    return fake_run(tmp_path_factory.mktemp("run"))
