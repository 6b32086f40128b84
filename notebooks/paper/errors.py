"""Errors: of the rows against PySCF, over the size of the molecule, and of each SCF cycle."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from paper import conformers
from paper.drawing import (
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
from pyscf_ipu import Molecule, Settings, Solver, rks, rks_core
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.ipu import BOW, machine_of
from pyscf_ipu.numerics.two_words import to_float64
from pyscf_ipu.scf.convergence import PLAIN, Convergence

QUANTITIES = ("energy", "homo", "lumo", "gap")
FEW_CYCLES = 5
"""Of an SCF that is not converged."""

LEAST_LOG = -4.0
"""Errors below 1e-4 meV are drawn there."""

SMILES = {True: "CO", False: "C=CC=O"}
CYCLES = 20
NEVER = 10_000
WAYS = {
    "DIIS": PLAIN,
    "no DIIS": Convergence(diis_start=NEVER),
    "damped by half": Convergence(damping=0.5, diis_start=NEVER),
}
LEAST_MEV = 1e-5
"""Errors below it are drawn there."""

STYLES: dict[str, dict[str, Any]] = {
    "float64": {"color": GREY, "lw": 5, "alpha": 0.4},
    "float32": {"color": BLUE, "lw": 1.2},
    "mixed": {"color": "black", "lw": 0.8, "ls": ":", "marker": "x", "ms": 4},
    "simulated IPU": {"color": ORANGE, "lw": 1.2, "ls": "--"},
}
"""How the curves of a precision are drawn."""


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
        axes.axvline(np.log10(mae), color=BLUE, lw=1.2, label=f"our MAE: {mae:.2g} meV")
        if name in published:
            value = published[name]
            axes.axvline(
                np.log10(value), color=RED, lw=1.2, label=f"PySCF-IPU's MAE: {value:.2f} meV"
            )
        axes.axvline(
            np.log10(CHEMICAL_ACCURACY_MEV),
            color=GREY,
            ls=":",
            lw=1.2,
            label="chemical accuracy, 1 kcal/mol",
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
        axes.axhline(value, color=RED, lw=1.2, label=f"PySCF-IPU, GDB-10: {value:.2f} meV")
        plain(axes, "atomic orbitals", f"|error of the {name}| (meV)")
        axes.set_ylim(bottom=axes.get_ylim()[0] / 30)
        legend(axes, loc="lower left")
    header = ("quantity", "aos_from", "aos_to", "rows", "mean_abs_error_mev", "mean_error_mev")
    keep(job, "error_over_size", figure, header, rows)


def each_cycle(job: Job) -> None:
    """The SCF of one molecule with 20 cycles, as PySCF-IPU does them."""
    mol = Molecule.from_smiles(SMILES[job.quick], seed=0)
    level = Settings(xc="b3lyp5", grid_level=0, fixed_cycles=CYCLES, history=True)
    exact = replace(level, precision="float64")
    reference = float(rks(mol, solver=Solver(replace(exact, fixed_cycles=40))).energy)
    curves: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for precision in ("float64", "float32", "mixed"):
        solver = Solver(replace(level, precision=precision))
        for way, aids in WAYS.items():
            found = solver.run(solver.shape(mol), [mol], convergence=aids)[0]
            curves[precision, way] = _with_final(precision, found)
    curves |= {("simulated IPU", way): curve for way, curve in simulated(mol, level).items()}
    figure = _cycles_picture(curves, reference, mol.smiles or "")
    rows = [
        (precision, way, i + 1, *(curve[name][i] for name in ("energy", "commutator_norm", "gap")))
        for (precision, way), curve in curves.items()
        for i in range(len(curve["energy"]))
    ]
    header = ("precision", "way", "cycle", "energy_hartree", "commutator_hartree", "gap_hartree")
    keep(job, "scf_cycles", figure, header, rows)


def _cycles_picture(
    curves: Mapping[tuple[str, str], Mapping[str, np.ndarray]], reference: float, smiles: str
) -> Figure:
    """A column for each way to converge, a style for each precision."""
    figure = canvas(len(WAYS), 3, width=3.4, height=2.2)
    panels = figure.subplots(3, len(WAYS), sharex=True, sharey="row")
    for (precision, way), curve in curves.items():
        at = np.arange(1, len(curve["energy"]) + 1)
        above = HARTREE_TO_EV * (curve["energy"] - reference)
        above_mev = np.maximum(1e3 * np.abs(above), LEAST_MEV)
        energy, error, commutator = panels[:, [*WAYS].index(way)]
        energy.plot(at, above, **STYLES[precision], label=precision)
        error.semilogy(at, above_mev, **STYLES[precision])
        commutator.semilogy(at, curve["commutator_norm"], **STYLES[precision])
    for (energy, _, commutator), way in zip(panels.T, WAYS, strict=True):
        plain(energy, "", "", way).set_yscale("symlog", linthresh=1)
        plain(commutator, "SCF cycle", "").set_xticks(range(0, CYCLES + 1, 5))
    names = ("energy above the\nminimum (eV)", "|error of the\nenergy| (meV)")
    names += ("largest element of\n[F, D] (Hartree)",)
    for row, name in zip(panels, names, strict=True):
        plain(row[0], row[0].get_xlabel(), name)
        for axes in row:
            axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"SMILES {smiles}, B3LYP (VWN5)/STO-3G, grid level 0", fontsize=10)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _with_final(precision: str, found: object) -> dict[str, np.ndarray]:
    """The cycles; mixed has one more energy, that of the final evaluation in float64."""
    history = dict(found.history)  # type: ignore[attr-defined]
    if precision == "mixed":
        last = {"energy": found.energy, "commutator_norm": found.commutator_norm}  # type: ignore[attr-defined]
        last["gap"] = found.gap  # type: ignore[attr-defined]
        return {name: np.append(values, last[name]) for name, values in history.items()}
    return history


def simulated(mol: Molecule, level: Settings) -> dict[str, dict[str, np.ndarray]]:
    """Each way with the algorithms that the simulated IPU prices, in float32."""
    core, arguments = rks_core(mol, level, lambda shape: machine_of(BOW, 1, shape))
    table, conformer = arguments[:2]
    run, found = jax.jit(core), {}
    for way, aids in WAYS.items():
        with_aids = conformer._replace(aids=aids.aids(np.float32))
        history = jax.device_get(run(table, with_aids).history)
        assert history is not None
        found[way] = {
            "energy": np.asarray(to_float64(history.energy)),
            "commutator_norm": np.asarray(history.commutator, np.float64),
            "gap": np.asarray(history.gap, np.float64),
        }
    return found
