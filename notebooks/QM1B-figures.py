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
# # The figures of the QM1B paper
#
# **What you will learn.** How good float32 labels are, how an SCF comes down to them, what is in a dataset of conformers, and how much a gap varies within one molecule.
#
# **What you need.** The folder `paper` beside this notebook, which makes the figures. A few minutes of computing on two cores.
#
# ```sh
# pip install ".[notebooks]"                        # in the checkout
# pip install jupyterlab && jupyter lab notebooks/
# ```
#
# The paper is *Generating QM1B with PySCF_IPU*, [arXiv:2311.01135](https://arxiv.org/abs/2311.01135). [docs/figures.md](../docs/figures.md#the-paper-figure-by-figure) has every figure with the published numbers beside ours; here are those of the quick form that need no training.

# %%
import csv
import tempfile
from pathlib import Path

import numpy as np
from IPython.display import Image, display

from paper import conformers, dataset, errors, operations
from paper.drawing import Job

job = Job(Path(tempfile.mkdtemp()), quick=True, molecules=40, each=10, dpi=80)


def show(name):
    display(Image(job.out / f"{name}.png", width=900))


def numbers(name):
    with open(job.out / f"{name}.csv") as stream:
        return list(csv.DictReader(stream))


# %% [markdown]
# ## The data
#
# 40 molecules of GDB-11 with ten conformers each, at QM1B's level: B3LYP with VWN5, STO-3G, grid level 0, float32. PySCF recomputes 6 % of the rows in float64.

# %%
rows = conformers.rows(job)
print(f"{len(rows.columns['gap'])} rows, {rows.audited.sum()} of them with PySCF's numbers")
dataset.histograms(job)
show("dataset_histograms")

# %% [markdown]
# ## How much a gap varies within a molecule
#
# QM1B has up to a thousand conformers of each molecule. What do they add? On the left, the standard deviation of the gap among the conformers of each molecule; on the right a narrow, a typical and a wide one.

# %%
dataset.gap_spread(job)
show("gap_spread")
spread = [float(row["std_of_gap_mev"]) for row in numbers("gap_spread")]
print(
    f"median {np.median(spread):.0f} meV; 90 % between {np.percentile(spread, 5):.0f} and {np.percentile(spread, 95):.0f}"
)

# %% [markdown]
# ## The errors of float32
#
# PySCF-IPU reported mean absolute errors of 6.06 meV in the energy and 0.20 meV in the gap. The orange rows are the same molecules, stopped after five cycles.

# %%
errors.histograms(job)
show("error_histograms")
mine = rows.errors_mev()
print({name: f"{np.mean(np.abs(values)):.3f} meV" for name, values in mine.items()})

# %% [markdown]
# ## Cycle by cycle
#
# Twenty cycles, as the paper does them. float64 goes down to where it cannot be told from zero; float32 stops at its rounding; `mixed` ends with one evaluation in float64.

# %%
errors.each_cycle(job)
show("scf_cycles")

# %% [markdown]
# ## Single operations
#
# The functional in float32 over the density, and Coulomb and exchange matrices.

# %%
operations.functional_errors(job)
show("functional_errors")

# %%
operations.coulomb_and_exchange(job)
show("coulomb_exchange_errors")

# %% [markdown]
# ## Where to go from here
#
# * All figures, also those that train SchNet, in a checkout: `python benchmarks/paper_figures.py --quick --out figures`.
# * A dataset of your own, step by step: [QM1B as a recipe](../docs/running.md#qm1b-as-a-recipe).
# * The training of the paper: `schnet train --preset qm1b-paper`, [SchNet](../docs/schnet.md).
