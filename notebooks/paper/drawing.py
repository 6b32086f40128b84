"""How a figure of the paper is drawn and kept: PNG and PDF, with its numbers as CSV beside it."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BLUE, RED, GREEN, ORANGE, GREY = "#33658a", "#b23a48", "#4f772d", "#d98c21", "#7a7a7a"
COLOURS = (BLUE, RED, GREEN, ORANGE, GREY, "#6a4c93", "#1b998b", "#8d5b4c")

CHEMICAL_ACCURACY_MEV = 43.4
"""1 kcal/mol."""

PUBLISHED_ENERGY_MEV, PUBLISHED_GAP_MEV = 6.06, 0.20
"""Mean absolute errors of PySCF-IPU in float32 over 14,357 conformers of GDB-10."""

PUBLISHED_CYCLES = {"sto-3g": 77.7e6, "6-31g": 108.7e6, "6-31g*": 302.8e6}
"""Device cycles of 20 SCF cycles that PySCF-IPU reported: C5H12, then a bare row of C5."""

PUBLISHED_GAP_MAE_MEV = {1e5: 285.0, 1e6: 84.0, 1e7: 42.0, 1e8: 33.0}
"""Error of SchNet 9M by number of training rows of QM1B, read off a figure with two logarithmic
axes."""


@dataclass(frozen=True)
class Job:
    """Where figures go, and how much is computed for them."""

    out: Path
    quick: bool
    """Few molecules, so that all figures together take minutes."""
    molecules: int | None = None
    """How many, instead of those of the form; and conformers of each."""
    each: int | None = None
    times: bool = True
    """Whether this machine is timed; not if other work shares it."""
    dpi: int = 160
    """Dots per inch of the PNG."""

    @property
    def data(self) -> Path:
        """The folder of conformers that all figures share."""
        return self.out / "data" / ("quick" if self.quick else "full")


def canvas(columns: int = 1, rows: int = 1, width: float = 3.6, height: float = 2.9) -> Figure:
    """An empty figure for this many panels, each of this size in inches."""
    return Figure(figsize=(width * columns, height * rows), layout="constrained")


def plain(axes: Axes, x: str, y: str, title: str = "") -> Axes:
    """Axes with labels, without a frame at the top and on the right."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def legend(axes: Axes, **options: object) -> None:
    """A small legend without a frame."""
    axes.legend(**{"frameon": False, "fontsize": 7} | options)  # type: ignore[arg-type]


def keep(
    job: Job, name: str, figure: Figure, header: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Write NAME.png, NAME.pdf and NAME.csv."""
    job.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(job.out / f"{name}.png", dpi=job.dpi, metadata={"Software": None})
    figure.savefig(job.out / f"{name}.pdf", metadata={"CreationDate": None, "Producer": None})
    table(job, name, header, rows)


def table(job: Job, name: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write NAME.csv."""
    job.out.mkdir(parents=True, exist_ok=True)
    with open(job.out / f"{name}.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows([_short(value) for value in row] for row in rows)


def _short(value: object) -> object:
    return f"{float(value):.12g}" if isinstance(value, float | np.floating) else value
