"""Pictures of distributions as PNG files, made without a window or global state."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from qm1b.report.distribution import Distribution
from qm1b.storage import files

BLUE, RED = "#33658a", "#b23a48"
MAX_BINS = 60

ERRORS = {
    "energy_mev": ("energy error (meV)", 1.0),
    "homo_mev": ("HOMO error (meV)", 1.0),
    "lumo_mev": ("LUMO error (meV)", 1.0),
    "gap_mev": ("gap error (meV)", 1.0),
    "dipole_e_bohr": ("dipole error (0.001 e bohr)", 1e3),
    "charge_e": ("charge error (0.001 e)", 1e3),
    "force_mev_angstrom": ("force error (meV/Å)", 1.0),
}
"""Title of each difference in a picture, and the factor to the unit of the title."""


def distributions(histograms: Sequence[Distribution], folder: Path) -> list[Path]:
    """A PNG for each distribution, and `overview.png` with all of them.

    Raises:
        UserError: the folder cannot be written.
    """
    paths = []
    for one in histograms:
        figure = Figure(figsize=(5, 3.2), layout="constrained")
        histogram(figure.subplots(), one)
        paths.append(save(figure, folder / f"{one.name}.png"))
    return [*paths, overview(histograms, folder)]


def overview(histograms: Sequence[Distribution], folder: Path) -> Path:
    """`overview.png` with all distributions."""
    return save(_panels(histograms, columns=4, width=3.6), folder / "overview.png")


def errors(rows: Sequence[object], path: Path) -> Path:
    """Histograms of the differences of `comparison.Compared` rows."""
    histograms = []
    for name, (title, factor) in ERRORS.items():
        histograms.append(Distribution(name, title))
        histograms[-1].add(factor * np.array([getattr(row, name) for row in rows], np.float64))
    return save(_panels(histograms, columns=3, width=3.2), path)


def _panels(histograms: Sequence[Distribution], columns: int, width: float) -> Figure:
    """A histogram per distribution that has values, `width` inches wide."""
    histograms = [one for one in histograms if one.count]
    lines = -(-len(histograms) // columns)
    figure = Figure(figsize=(width * columns, 2.8 * max(lines, 1)), layout="constrained")
    for place, one in enumerate(histograms, start=1):
        histogram(figure.add_subplot(lines, columns, place), one)
    return figure


def histogram(axes: Axes, one: Distribution) -> None:
    """A histogram in percent of the rows, with the median as a line."""
    values = one.sample
    heights, edges = np.histogram(values, bins(values, one.whole))
    axes.stairs(100 * heights / values.size, edges, fill=True, color=BLUE)
    median = float(np.median(values))
    axes.axvline(median, color=RED, linewidth=1.2)
    axes.set_title(f"median {median:.4g}", color=RED, fontsize=9, loc="right")
    axes.set_xlabel(one.title)
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=one.whole))  # labels may be "-0.075"
    axes.set_ylabel("rows (%)")
    axes.spines[["top", "right"]].set_visible(False)


def bins(values: np.ndarray, whole: bool) -> np.ndarray:
    """Edges of bins: one per whole number if there are few, else of equal width.

    The width is Freedman's and Diaconis' (doi:10.1007/BF01025868), limited to 1 to MAX_BINS bins.
    """
    low, high = float(values.min()), float(values.max())
    if whole:
        width = max(1, -(-int(high - low + 1) // MAX_BINS))
        return np.arange(low - 0.5, high + 0.5 + width, width)
    if low == high:
        return np.array([low - 0.5, low + 0.5])
    edges = np.histogram_bin_edges(values, "fd")
    n = int(np.clip(len(edges) - 1, min(10, len(np.unique(values))), MAX_BINS))
    return np.linspace(low, high, n + 1)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG, and make its folder; the same data gives the same bytes."""
    files.make_folder(path.parent)
    files.atomic_write(
        path,
        lambda stream: figure.savefig(stream, format="png", dpi=130, metadata={"Software": None}),
    )
    return path
