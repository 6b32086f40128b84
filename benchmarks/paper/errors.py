"""Errors against PySCF in float64: as histograms, and over the size of the molecule."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from benchmarks.paper import conformers
from benchmarks.paper.drawing import (
    BLUE,
    CHEMICAL_ACCURACY_MEV,
    GREEN,
    GREY,
    ORANGE,
    PUBLISHED_ENERGY_MEV,
    PUBLISHED_GAP_MEV,
    RED,
    Job,
    canvas,
    keep,
    legend,
    plain,
)
from pyscf_ipu import Molecule, Settings, Solver
from pyscf_ipu.units import HARTREE_TO_EV

QUANTITIES = ("energy", "homo", "lumo", "gap")
FEW_CYCLES = 5
"""Of an SCF that is not converged."""

LEAST_LOG = -4.0
"""Errors below 1e-4 meV are drawn there."""


def histograms(job: Job) -> None:
    """log10 of the absolute errors of energy, HOMO, LUMO and gap, converged and not."""
    found = conformers.rows(job)
    converged, early = found.errors_mev(), stopped_early(found, 40 if job.quick else 400)
    figure = canvas(4, 1, width=3.1)
    published = {"energy": PUBLISHED_ENERGY_MEV, "gap": PUBLISHED_GAP_MEV}
    for axes, name in zip(figure.subplots(1, 4), QUANTITIES, strict=True):
        edges = np.arange(LEAST_LOG, 5.01, 0.25)
        for values, colour, label in (
            (converged[name], BLUE, f"converged ({len(converged[name])})"),
            (early[name], ORANGE, f"stopped after {FEW_CYCLES} cycles ({len(early[name])})"),
        ):
            logs = np.log10(np.maximum(np.abs(values), 10**LEAST_LOG))
            heights, _ = np.histogram(logs, edges)
            axes.stairs(100 * heights / len(logs), edges, fill=True, alpha=0.6, color=colour)
            axes.stairs(100 * heights / len(logs), edges, color=colour, label=label)
        mae = float(np.mean(np.abs(converged[name])))
        axes.axvline(np.log10(mae), color=BLUE, lw=1.2, label=f"our mean: {mae:.2g} meV")
        if name in published:
            value = published[name]
            axes.axvline(np.log10(value), color=RED, lw=1.2, label=f"PySCF-IPU: {value} meV")
        axes.axvline(
            np.log10(CHEMICAL_ACCURACY_MEV), color=GREY, ls=":", lw=1.2, label="1 kcal/mol"
        )
        label = name if name in ("energy", "gap") else name.upper()
        plain(axes, f"log10 |error of {label} / meV|", "rows (%)" if name == "energy" else "")
        axes.set_ylim(top=axes.get_ylim()[1] * 1.7)
        legend(axes, loc="upper left", frameon=True, framealpha=0.85, edgecolor="none")
    rows = [
        (kind, name, error)
        for kind, group in (("converged", converged), ("stopped", early))
        for name in QUANTITIES
        for error in group[name]
    ]
    keep(job, "error_histograms", figure, ("rows", "quantity", "error_mev"), rows)


def stopped_early(found: conformers.Rows, most: int) -> dict[str, np.ndarray]:
    """Errors in meV of audited rows of one shape, computed with a few cycles only."""
    c, known = found.columns, np.flatnonzero(found.audited)
    solver = Solver(Settings(xc="b3lyp5", grid_level=0, fixed_cycles=FEW_CYCLES))
    mols = {i: Molecule(c["numbers"][i], c["positions"][i]) for i in known}
    shapes = {i: solver.shape(mol, coarse=True) for i, mol in mols.items()}
    (shape, _), *_ = Counter(shapes.values()).most_common(1)
    chosen = np.array([i for i in known if shapes[i] == shape][:most])
    size = solver.batch_size(shape)
    results = [
        row
        for start in range(0, len(chosen), size)
        for row in solver.run(shape, [mols[i] for i in chosen[start : start + size]])
    ]
    ours = {n: HARTREE_TO_EV * np.array([getattr(r, n) for r in results]) for n in QUANTITIES}
    theirs = {name: c[f"reference_{name}"][chosen] for name in ("energy", "homo", "lumo")}
    theirs["gap"] = theirs["lumo"] - theirs["homo"]
    return {name: 1e3 * (ours[name] - theirs[name]) for name in QUANTITIES}


def over_size(job: Job) -> None:
    """The error of energy and gap over the number of atomic orbitals."""
    found = conformers.rows(job)
    errors, aos = found.errors_mev(), found.columns["aos"][found.audited]
    figure = canvas(2, 1, width=4.2)
    rows: list[Sequence[object]] = []
    published = {"energy": PUBLISHED_ENERGY_MEV, "gap": PUBLISHED_GAP_MEV}
    for axes, name in zip(figure.subplots(1, 2), ("energy", "gap"), strict=True):
        size = np.abs(errors[name])
        axes.semilogy(aos, np.maximum(size, 1e-4), ".", ms=3, color=BLUE, label="rows")
        edges = np.unique(np.quantile(aos, np.linspace(0, 1, 6)))
        for low, high in pairwise(edges):
            inside = (aos >= low) & (aos <= high)
            mean, bias = float(size[inside].mean()), float(errors[name][inside].mean())
            rows.append((name, low, high, int(inside.sum()), mean, bias))
            label = "mean, by size" if low == edges[0] else None
            axes.plot([low, high], [mean, mean], color=GREEN, lw=2, label=label)
        value = published[name]
        axes.axhline(value, color=RED, lw=1.2, label=f"PySCF-IPU, GDB-10: {value} meV")
        plain(axes, "atomic orbitals", f"|error of the {name}| (meV)")
        axes.set_ylim(bottom=axes.get_ylim()[0] / 30)
        legend(axes, loc="lower left")
    header = ("quantity", "aos_from", "aos_to", "rows", "mean_abs_error_mev", "mean_error_mev")
    keep(job, "error_over_size", figure, header, rows)
