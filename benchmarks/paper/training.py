"""SchNet on the conformers: error over rows, over conformers per molecule, over size; transfer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib.figure import Figure

from benchmarks.training.fitting import joined
from paper import conformers
from paper.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PUBLISHED_GAP_MAE_MEV,
    RED,
    Job,
    canvas,
    keep,
    legend,
    plain,
)
from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.process.interrupts import Interrupt
from schnet.network.config import PAPER_OPTIMIZER, ModelConfig, Optimizer, Schedule
from schnet.network.predictor import Predictor
from schnet.runs.run_folder import RunFolder
from schnet.runs.settings import Data, TrainSettings
from schnet.samples.samples import Samples
from schnet.sources.splitting import SIDES
from schnet.training.loop import Training
from schnet.training.prepare import Prepared, prepare

SMALL = ModelConfig(width=64, filters=64, interactions=3, gaussians=40)
EXAMPLES = {True: 16_000, False: 1_000_000}
"""Rows that a training sees, each counted as often as it is seen: the same work for each point."""

FINE_EXAMPLES = 4_000
"""Of a training on QM9's rows."""

SIZES = {True: (100, 300, 1000), False: (100, 1000, 10_000, 30_000, 70_000)}
EACH = {True: (1, 3, 12), False: (1, 10, 100)}
ROWS_OF_EACH = {True: 90, False: 240}
MEV = 1e3 * HARTREE_TO_EV
QM9 = Path(__file__).parents[2] / "tests" / "schnet" / "data" / "qm9_60.extxyz.gz"


def over_rows(job: Job) -> None:
    """Test error of the gap over training rows, and over conformers per molecule at equal rows."""
    folder = conformers.rows(job).folder
    figure = canvas(2, 1, width=4.2)
    left, right = figure.subplots(1, 2)
    rows = []
    every = conformers.CONFORMERS[job.quick]
    for size in SIZES[job.quick]:  # of as many molecules as that takes, with all conformers
        settings = small_training(job, folder, limit=size, conformers_per_molecule=every)
        error, mean = error_of(settings)
        rows.append(("rows", size, every, error, mean))
    left.loglog(*zip(*[(r[1], r[3]) for r in rows], strict=True), "o-", color=BLUE, label="ours")
    published = zip(*PUBLISHED_GAP_MAE_MEV.items(), strict=True)
    left.loglog(*published, "s--", color=RED, label="published, SchNet 9M on QM1B")
    left.axhline(rows[-1][4], color=ORANGE, ls=":", label="always the mean (ours)")
    plain(left, "training rows", "test MAE of the gap (meV)", "unseen molecules")
    legend(left)
    at = ROWS_OF_EACH[job.quick]
    for each in EACH[job.quick]:
        settings = small_training(job, folder, limit=at, conformers_per_molecule=each)
        error, mean = error_of(settings)
        rows.append(("conformers per molecule", at, each, error, mean))
    points = [(r[2], r[3]) for r in rows if r[0].startswith("conformers")]
    right.semilogx(*zip(*points, strict=True), "o-", color=GREEN)
    right.set_xticks([p[0] for p in points], [f"{p[0]}" for p in points], minor=False)
    right.set_xticks([], minor=True)
    for each, error in points:
        text = f"{at // each} molecules"
        right.annotate(text, (each, error), (0, -14), textcoords="offset points", fontsize=7)
    plain(right, "conformers per molecule", "test MAE of the gap (meV)", f"{at} training rows each")
    right.margins(0.2)
    header = ("figure", "training_rows", "conformers_per_molecule", "test_mae_mev", "mean_mae_mev")
    keep(job, "schnet_rows", figure, header, rows)


def over_size(job: Job) -> None:
    """Trained on molecules of N heavy atoms, tested on N - 2 to N + 2."""
    found, heavy = conformers.rows(job), 7
    with TemporaryDirectory() as scratch:
        settings = small_training(job, found.folder, limit=None)
        predictor, prepared = _trained(settings, Path(scratch) / "run", heavy)
        # Of other sizes the training has seen nothing, whichever side of the split they are on.
        everything = Samples.concatenate([joined(prepared, name) for name in SIDES])
        nine = prepare(small_training(job, conformers.nine_heavy(job).folder))
        unseen = [joined(prepared, "test"), everything]
        unseen.append(Samples.concatenate([joined(nine, name) for name in SIDES]))
        rows = []
        for n in range(heavy - 2, heavy + 3):
            samples = unseen[0 if n == heavy else 1 if n < heavy + 2 else 2]
            test = samples.take(np.flatnonzero(_heavy_atoms(samples) == n))
            molecules = len(set(test.molecules.tolist()))
            mean = MEV * float(np.mean(np.abs(test.targets - np.mean(test.targets))))
            rows.append((heavy, n, molecules, len(test), predictor.errors([test]).mae, mean))
    header = ("trained_on_heavy_atoms", "tested_on_heavy_atoms", "molecules", "rows")
    keep(job, "schnet_size", _sizes(heavy, rows), (*header, "test_mae_mev", "mean_mae_mev"), rows)


def _sizes(heavy: int, rows: Sequence[Sequence[float]]) -> Figure:
    """A bar for each size of molecule; `heavy` atoms had those of the training."""
    figure = canvas(1, 1, width=5.6)
    axes = figure.subplots()
    axes.bar([r[1] for r in rows], [r[4] for r in rows], color=BLUE)
    for row in rows:
        text = f"{row[4]:.0f}\n{row[2]} molecules"
        style = {"ha": "center", "va": "top", "color": "white", "fontsize": 7}
        axes.text(row[1], row[4] - 20, text, **style)
    spread = [r[5] for r in rows]
    axes.plot([r[1] for r in rows], spread, "o:", color=GREEN, label="always the mean of that size")
    axes.axvspan(
        heavy - 0.5, heavy + 0.5, color=ORANGE, alpha=0.2, zorder=0, label="size of the training"
    )
    axes.set_xticks([r[1] for r in rows])
    plain(axes, "heavy atoms of the test molecules", "test MAE of the gap (meV)")
    axes.set_ylim(top=1.35 * max(*spread, *(r[4] for r in rows)))
    legend(axes)
    return figure


def recipes(job: Job) -> None:
    """Our training and the paper's on the same rows, and transfer to QM9's own gaps."""
    folder = conformers.rows(job).folder
    ours = small_training(job, folder, limit=SIZES[job.quick][-1])
    updates = max(1, EXAMPLES[job.quick] // 112)
    paper = replace(  # the paper's schedule, as much shorter as the training is
        PAPER_OPTIMIZER, warmup_updates=updates // 10, decay_updates=max(1, updates // 30)
    )
    theirs = replace(
        ours,
        rows=replace(ours.rows, scaling="none"),
        model=replace(SMALL, readout="sum"),
        optimizer=paper,
        schedule=replace(ours.schedule, pack_molecules=7, accumulation=16, devices=1),
    )
    rows = []
    with TemporaryDirectory() as scratch:
        kept = Path(scratch) / "ours"
        for name, settings, out in (("ours", ours, kept), ("qm1b-paper", theirs, None)):
            error, mean = error_of(settings, out)
            rows.append(("gap of unseen molecules", name, error, mean))
        fine = replace(
            small_training(job, QM9, limit=None, split="40,10,10"),
            schedule=replace(ours.schedule, max_examples=FINE_EXAMPLES, pack_molecules=8),
        )
        for name, init in (("from scratch", None), ("from our rows", kept)):
            error, mean = error_of(replace(fine, init=init))
            rows.append(("QM9's own gaps, 40 training rows", name, error, mean))
    figure = canvas(1, 1, width=5.0)
    axes = figure.subplots()
    axes.bar(range(len(rows)), [r[2] for r in rows], color=[BLUE, RED, GREEN, ORANGE])
    for i, row in enumerate(rows):
        axes.text(i, row[2], f"{row[2]:.0f}", ha="center", va="bottom", fontsize=8)
    at = range(len(rows))
    left, right = ([i + side for i in at] for side in (-0.4, 0.4))
    axes.hlines([r[3] for r in rows], left, right, color=GREY, ls=":", label="always the mean")
    labels = ["ours", "as the paper's\ntrainer", "QM9 from\nscratch", "QM9 from\nour rows"]
    axes.set_xticks(at, labels, fontsize=8)
    title = f"{EXAMPLES[job.quick]:,} examples of our rows; {FINE_EXAMPLES:,} of QM9"
    plain(axes, "", "test MAE of the gap (meV)", title)
    legend(axes)
    keep(job, "schnet_recipes", figure, ("data", "training", "test_mae_mev", "mean_mae_mev"), rows)


def small_training(
    job: Job, data: Path, split: str = "0.7,0.1,0.2", examples: int = 0, **rows: object
) -> TrainSettings:
    """A training of the gap by a small network.

    Args:
        job: decides the number of examples, unless it is given.
        data: rows.
        split: as of `Data`.
        examples: rows that the training sees.
        rows: other fields of `Data`.
    """
    most = examples or EXAMPLES[job.quick]
    return TrainSettings(
        Data(data=(data,), target="gap", split=split, **rows),  # type: ignore[arg-type]
        SMALL,
        Optimizer(learning_rate=1e-3, ema=0.99),
        Schedule(max_epochs=most, max_examples=most, valid_every=most, pack_molecules=32),
    )


def _trained(
    settings: TrainSettings, out: Path, heavy: int | None = None
) -> tuple[Predictor, Prepared]:
    """The network after a training, of molecules of one size if it is given."""
    prepared = prepare(settings)
    if heavy is not None:
        prepared = prepare(replace(settings, rows=_of_size(settings.rows, out.parent, heavy)))
    run = RunFolder(out)
    run.start(settings, prepared.description)
    Training(prepared, run, lambda _: None).run(Interrupt())
    return run.predictor(), prepared if heavy is None else prepare(settings)


def _of_size(rows: Data, scratch: Path, heavy: int) -> Data:
    """The training rows of one size, as a file of their own."""
    from ase import Atoms
    from ase.io import write

    import qm1b
    from pyscf_ipu.base.units import BOHR_TO_ANGSTROM
    from qm1b.convert.split import Fractions, side

    train, valid, test = map(float, rows.split.split(","))
    frames = []
    for row in qm1b.load(rows.data[0]):
        fits = int((np.asarray(row["numbers"]) > 1).sum()) == heavy
        ours = side(row["smiles"], rows.split_seed, Fractions(train, valid, test)) != "test"
        if fits and ours and row["status"] == "converged":
            positions = np.asarray(row["positions"]) * BOHR_TO_ANGSTROM
            info = {"smiles": row["smiles"], "gap_au": row["lumo"] - row["homo"]}
            frames.append(Atoms(numbers=row["numbers"], positions=positions, info=info))
    path = scratch / "one_size.extxyz"
    write(path, frames)
    return replace(rows, data=(path,), split="0.9,0.1,0.0")


def _heavy_atoms(samples: Samples) -> np.ndarray:
    starts = samples.atom_offset[:-1]
    return np.add.reduceat((samples.numbers > 1).astype(int), starts)


def error_of(settings: TrainSettings, out: Path | None = None) -> tuple[float, float]:
    """Test error in meV, and that of always predicting the mean of the training rows."""
    with TemporaryDirectory() as scratch:
        predictor, prepared = _trained(settings, out or Path(scratch) / "run")
        test = joined(prepared, "test")
        error = predictor.errors([test]).mae  # in meV
        mean = np.mean(joined(prepared, "train").targets)
        return error, MEV * float(np.mean(np.abs(test.targets - mean)))
