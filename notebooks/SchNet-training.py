# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Learning the gap with SchNet
#
# **What you will learn.** How a network learns a property from geometries, how to read a learning curve and a parity plot, how much more data helps, and what it means to transfer weights to another level of theory.
#
# **What you need.** An idea of gradient descent. About two minutes of computing on two cores.
#
# ```sh
# pip install ".[notebooks]"                        # in the checkout
# pip install jupyterlab && jupyter lab notebooks/
# ```

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rdkit import Chem
from rdkit.Chem import Draw

import pyscf_ipu as pi
from pyscf_ipu.base.units import HARTREE_TO_EV
from schnet import RunFolder, open_source
from schnet.cli import main

plt.rcParams.update({"figure.dpi": 90, "axes.spines.top": False, "axes.spines.right": False})
pi.enable_disk_cache()
DATA, QM9 = Path("data/gdb11_8_heavy.parquet"), Path("data/qm9_60.extxyz.gz")
runs = Path(tempfile.mkdtemp())


def schnet(*words):
    """What `schnet WORDS` prints in a terminal; an exit code other than 0 is an error."""
    code = main([str(word) for word in words])
    assert code == 0, f"exit code {code}"


# %% [markdown]
# ## 1. The data
#
# The rows are like those that *DFT-dataset-generation* makes: molecules with eight heavy atoms, one geometry each, B3LYP/STO-3G ([where they come from](data/README.md)).
# We learn `y`, the gap between the highest occupied and the lowest empty orbital.

# %%
table = pd.read_parquet(DATA)
print(f"{len(table)} rows; gap {table.y.mean():.2f} eV, standard deviation {table.y.std():.2f} eV")
print(f"always saying the median is wrong by {(table.y - table.y.median()).abs().mean():.2f} eV")
ends = table.sort_values("y").iloc[[0, 1, 2, -3, -2, -1]]
picture = Draw.MolsToGridImage(
    [Chem.MolFromSmiles(s) for s in ends.smile],
    molsPerRow=6,
    subImgSize=(130, 110),
    legends=[f"{y:.2f} eV" for y in ends.y],
)
picture

# %%
fig, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
several = table.smile.str.contains("=|#")
bins = np.linspace(table.y.min(), table.y.max(), 50)
ax.hist([table.y[several], table.y[~several]], bins, stacked=True, color=["#b23a48", "#33658a"])
ax.legend(["with a double or triple bond", "without"], frameon=False)
ax.set(xlabel="gap / eV", ylabel="rows")
plt.show()

# %% [markdown]
# ## 2. The network
#
# SchNet sees only elements and distances, so its answer does not depend on the molecule's position and orientation. Each atom begins with a vector of features that depends only on its element. In each of three *interactions*
# an atom sums up the features of its neighbours, weighted by filters that depend on the distance; a distance enters as fifty Gaussians. In the end each atom gives a number, and the gap is their mean.

# %%
centres = np.linspace(0, 15, 50)
distance = np.linspace(0, 15, 400)
waves = np.exp(-0.5 * ((distance[:, None] - centres) / (centres[1] - centres[0])) ** 2)
fig, ax = plt.subplots(figsize=(6, 1.8), layout="constrained")
ax.plot(distance, waves[:, ::3], lw=1)
ax.set(xlabel="distance / Bohr", ylabel="feature")
ax.set_title("every third of the Gaussians that describe a distance", fontsize=9)
plt.show()

# %% [markdown]
# ## 3. Train
#
# We use the `small` preset, which takes minutes rather than hours. The error on the validation rows decides which epoch's weights are kept; the test rows are used only once, at the end.

# %%
OPTIONS = ("--target", "gap", "--quiet", "--ema", "0.97", "--learning-rate", "0.001")
schnet(
    "train",
    "--data",
    DATA,
    *OPTIONS,
    "--out",
    runs / "gap",
    "--split",
    "640,60,100",
    "--max-epochs",
    "20",
)

# %%
log = pd.read_csv(runs / "gap" / "log.csv")
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(log.epoch, log.train_mae, label="training rows")
ax.plot(log.epoch, log.valid_mae, label="validation rows, averaged weights")
ax.set(xlabel="epoch", ylabel="mean absolute error / meV", ylim=(0, None))
ax.set_xticks(log.epoch[::3])
ax.legend(frameon=False)
plt.show()
print(f"{log.updates.iloc[-1]} updates, {log.graphs_per_s.median():.0f} molecules a second")

# %%
found = pd.read_csv(runs / "gap" / "test_predictions.csv")
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
ends = found.gap_in_file_ev.min(), found.gap_in_file_ev.max()
left.plot(ends, ends, color="grey", lw=0.8)
left.plot(found.gap_in_file_ev, found.gap_ev, "o", ms=3, alpha=0.7)
left.set(xlabel="DFT / eV", ylabel="SchNet / eV", aspect="equal", title="test rows")
error = found.gap_ev - found.gap_in_file_ev
right.hist(error, 25)
right.set(xlabel="error / eV", title=f"mean absolute error {error.abs().mean():.2f} eV")
plt.show()

# %% [markdown]
# The worst predictions are worth a look: they show what the data have too little of.

# %%
worst = found.assign(error=error).sort_values("error", key=abs).tail(6)
Draw.MolsToGridImage(
    [Chem.MolFromSmiles(s) for s in worst.smiles],
    molsPerRow=6,
    subImgSize=(130, 110),
    legends=[f"{e:+.2f} eV" for e in worst.error],
)

# %% [markdown]
# ## 4. More data
#
# Now we keep the test rows but use fewer training rows: `--limit` takes a subset of them. To compare data and not training time, each run sees about as many molecules as the one above, a small set more often:
# 160 epochs of 80 rows, 53 of 240 or 20 of 640 are 12,800 molecules, give or take one per cent. (With 80 rows there are a few more updates, since every epoch is cut into whole batches.) Each run uses the validation rows about twenty times.

# %%
for limit, epochs in ((80, 160), (240, 53)):
    print(f"{limit} rows:")
    schnet(
        "train", "--data", DATA, *OPTIONS, "--out", runs / f"gap-{limit}",
        "--split", "640,60,100", "--limit", limit, "--max-epochs", epochs,
        "--valid-every", epochs // 20,
    )  # fmt: skip

# %%
sizes, learned, errors, uncertain = [80, 240, 640], [], [], []
for n in sizes:
    run = runs / ("gap" if n == 640 else f"gap-{n}")
    part = pd.read_csv(run / "test_predictions.csv")
    error = (part.gap_ev - part.gap_in_file_ev).abs()
    errors.append(error.mean())
    uncertain.append(error.sem())
    last = pd.read_csv(run / "log.csv").iloc[-1]
    learned.append(last.train_mae / 1e3)
    print(f"{n:3} rows: {n * int(last.epoch)} molecules seen in {int(last.updates)} updates,"
          f" test error {errors[-1]:.2f} ± {uncertain[-1]:.2f} eV")  # fmt: skip
fig, ax = plt.subplots(figsize=(4.5, 3), layout="constrained")
ax.errorbar(sizes, errors, uncertain, marker="o", capsize=3, label="test rows")
ax.plot(sizes, learned, "o--", label="training rows, last epoch")
ax.set_xscale("log")
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.set(xlabel="training rows", ylabel="mean absolute error / eV", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# The gap between the two curves is what the network has memorised. It closes as rows are added: few rows can be remembered, many have to be understood. Where the curves meet, longer training or a larger
# network is needed before more rows help. The bars show only the uncertainty from the 100 test rows; another `--seed` moves the points as well, so three runs do not establish a law.
# With orders of magnitude more rows and updates, such errors have been seen to fall as a power of the number of rows. That is why this project makes data cheap.
#
# ## 5. Transfer
#
# QM9 has the gap at another level of theory, B3LYP/6-31G(2df,p), which is closer to experiment and costs far more. Suppose that we had only 20 of its molecules to train on.
# How wrong are our weights as they are, and what if we continue training from them?

# %%
predictor = RunFolder(runs / "gap").predictor()
parts = list(open_source(QM9, "gap", None, None).parts())
parts = [predictor.known(part) for part in parts]  # without elements that were not trained
here = np.concatenate([predictor(part) for part in parts])
there = np.concatenate([part.targets for part in parts])
here, there = here * HARTREE_TO_EV, there * HARTREE_TO_EV
print(
    f"as they are: mean error {np.mean(here - there):+.2f} eV, correlation {np.corrcoef(here, there)[0, 1]:.2f}"
)

# %% [markdown]
# The shift comes from the basis set: with STO-3G, the energies of empty orbitals are too high. But the order of the molecules is partly right, and training can build on that.

# %%
tune = (
    "--data",
    QM9,
    "--target",
    "gap",
    "--quiet",
    "--split",
    "20,10,30",
    "--ema",
    "0.9",
    "--max-epochs",
    "40",
)
print("from nothing:")
schnet("train", *tune, "--learning-rate", "0.001", "--out", runs / "scratch")
print("from our weights:")
schnet("train", *tune, "--learning-rate", "0.0003", "--out", runs / "tuned", "--init", runs / "gap")

# %%
fig, ax = plt.subplots(figsize=(4, 3.6), layout="constrained")
for name, label in (("scratch", "from nothing"), ("tuned", "from our weights")):
    part = pd.read_csv(runs / name / "test_predictions.csv")
    ax.plot(part.gap_in_file_ev, part.gap_ev, "o", ms=4, alpha=0.8, label=label)
ax.plot(*[[there.min(), there.max()]] * 2, color="grey", lw=0.8)
ax.set(xlabel="QM9 / eV", ylabel="SchNet / eV")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# (A test molecule with an element that none of the training molecules has is left out: the network was never told about that element.) So few molecules and one training of each kind are an anecdote and not a
# measurement: another `--split-seed` gives other figures. `python -m benchmarks.training.schnet transfer` does it with enough of them.
#
# ## Where to go from here
#
# * [`docs/schnet.md`](../docs/schnet.md): all targets and presets, packs, several devices, ASE.
# * `schnet predict RUN molecules.smi` in a shell.
