"""Runs of the fake engine, and their inputs."""

from qm1b.generate import Run, generate
from qm1b.presets import PRESETS, RunSettings

LINES = "O\nC\nCC\n[He]\n[Ne]\nCCl\nC[C\n\n[CH3]\nO\n[Na+].[Cl-]\nCCO\t12\t1\n" + "C" * 60 + "\nP"

MANY = LINES + "\n" + "\n".join("C" * n + "O" * m for n in range(1, 9) for m in range(3)) + "\nCC\n"
"""39 lines, ten units; several lines are duplicates of lines in other units."""


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
