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
# # From SMILES to a dataset that you can trust
#
# **What you will learn.** How a text file of molecules becomes a table of energies, orbital energies, dipole moments and charges, and what happens to lines that fail.
# Then how to check the table against PySCF, how to look at it, and how to open it in pandas.
#
# **What you need.** An idea of what SMILES are. About three minutes of computing on two cores.
#
# ```sh
# pip install ".[notebooks]"                        # in the checkout
# pip install jupyterlab && jupyter lab notebooks/
# ```

# %%
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import HTML, Image, display
from rdkit import Chem
from rdkit.Chem import Draw

import qm1b as dataset
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.elements.spellings import SYMBOLS

plt.rcParams.update({"figure.dpi": 90, "axes.spines.top": False, "axes.spines.right": False})


work = Path(tempfile.mkdtemp())
plain = {k: v for k, v in os.environ.items() if "COLOR" not in k}  # Jupyter asks for colours


def qm1b(line, n_last=None):
    """What `qm1b LINE` prints in a terminal; an exit code other than 0 is an error."""
    command = [sys.executable, "-m", "qm1b.cli", *shlex.split(line)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=work, env=plain)
    print("\n".join(done.stdout.splitlines()[-n_last:] if n_last else done.stdout.splitlines()))
    if done.returncode:
        raise RuntimeError(done.stderr)


# %% [markdown]
# ## 1. The input
#
# One SMILES per line. The last six are wrong on purpose, each in its own way, as in real files.

# %%
good = """CCCO CCCN CCCC CCCF CC(C)O CC(C)N COCC CNCC OCCO NCCO NCCN FCCO CC(=O)O CC(N)=O CCC=O
CC(C)=O NC=O CC#N CCC#N C=CC=C C=CCO C=CC#N C1CCO1 C1CC1 C1CCC1 C1CO1 OC=CC NC(N)=O""".split()
bad = ["CC(C", "CC.OC", "[CH2]CC", "CC[NH3+]", "OCCC", "[U]"]
(work / "molecules.smi").write_text("\n".join([*good, *bad]) + "\n")
Draw.MolsToGridImage(
    [Chem.MolFromSmiles(s) for s in good], molsPerRow=7, subImgSize=(110, 90), legends=good
)

# %% [markdown]
# ## 2. Generate
#
# RDKit makes five conformers of each molecule, then DFT runs at the level of the QM1B dataset: B3LYP (with VWN5), STO-3G, grid level 0, all in float32. Most of the time goes into compiling one
# program per *shape*; molecules with the same number of heavy atoms share one. In a terminal you would see a progress bar.

# %%
qm1b("generate molecules.smi --out data --conformers 5")

# %% [markdown]
# Every line became rows or is listed here, with a reason:

# %%
pd.read_csv(work / "data" / "dropped.csv")

# %% [markdown]
# If RDKit had found fewer than five conformers of a molecule, this would be listed as well, and those it found would be in the data.
#
# The folder describes itself. If you ran the same command again, it would find that nothing is missing; after a crash it would resume the run.

# %%
qm1b("info data")

# %% [markdown]
# ## 3. Look at rows
#
# `qm1b.load` streams rows in atomic units. Conformers of one molecule differ in energy; the Boltzmann factor says which ones matter at room temperature (the dotted line is kT).

# %%
rows = list(dataset.load(work / "data"))
row = rows[0]
print({name: row[name] for name in ("smiles", "conformer", "energy", "homo", "lumo", "cycles")})
symbols = [SYMBOLS[z] for z in row["numbers"]]
print("Mulliken charges / e:")
print(*[f"{s} {q:+.2f}" for s, q in zip(symbols, row["mulliken_charges"], strict=True)], sep=", ")

of = {}
for row in rows:
    of.setdefault(row["smiles"], []).append(row)
fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
spread = {s: np.array([r["energy"] for r in found]) * HARTREE_TO_EV for s, found in of.items()}
for i, energies in enumerate(spread.values()):
    ax.plot([i] * len(energies), energies - energies.min(), "o", ms=4, alpha=0.6, color="#33658a")
ax.axhline(0.0257, color="grey", lw=0.8, ls=":")
ax.text(len(of), 0.0257, "kT, 298 K", va="center", color="grey", fontsize=8)
ax.set_xlim(-1, len(of) + 3)
ax.set_xticks(range(len(of)), list(of), rotation=90, fontsize=8)
ax.set_ylabel("energy above the lowest / eV")
plt.show()

# %% [markdown]
# RDKit's conformers are not relaxed (`--relax mmff` would do that), so part of the spread comes from bond lengths and angles. For a training set this is welcome.
#
# Here are the conformers of one molecule on top of each other. The viewer py3Dmol loads its script from the network; the picture beside it does not need a network.

# %%
import py3Dmol

chosen = of["NCCO"]


def aligned(found):
    """Positions (Å) of all conformers, turned onto the first one's heavy atoms (Kabsch)."""
    heavy = found[0]["numbers"] > 1
    where = [r["positions"].astype(float) * BOHR_TO_ANGSTROM for r in found]
    where = [w - w[heavy].mean(0) for w in where]
    turned = []
    for w in where:
        u, _, v = np.linalg.svd(w[heavy].T @ where[0][heavy])
        mirror = np.diag([1, 1, np.sign(np.linalg.det(u @ v))])
        turned.append(w @ u @ mirror @ v)
    return turned


symbols = [SYMBOLS[z] for z in chosen[0]["numbers"]]
places = aligned(chosen)
view = py3Dmol.view(width=380, height=280)
for where in places:
    lines = [f"{s} {x:.3f} {y:.3f} {z:.3f}" for s, (x, y, z) in zip(symbols, where, strict=True)]
    view.addModel("\n".join([str(len(lines)), "", *lines]), "xyz")
view.setStyle({"stick": {"radius": 0.08}, "sphere": {"scale": 0.15}})
view.zoomTo()
display(HTML(view._make_html()))

fig, ax = plt.subplots(figsize=(4, 3), layout="constrained")
colour = {"H": "silver", "C": "dimgrey", "N": "royalblue", "O": "red"}
for where in places:
    _, _, axes = np.linalg.svd(places[0])
    flat = where @ axes[:2].T  # seen from the side on which most is seen
    for i in range(len(where)):
        for j in range(i):
            longest = 1.25 if "H" in (symbols[i], symbols[j]) else 1.65
            if np.linalg.norm(where[i] - where[j]) < longest:
                ax.plot(*flat[[i, j]].T, color="grey", lw=1.5, alpha=0.5)
    ax.scatter(
        *flat.T, c=[colour[s] for s in symbols], s=40, edgecolors="black", alpha=0.8, zorder=2
    )
ax.set_aspect("equal")
ax.axis("off")
plt.show()

# %% [markdown]
# ## 4. Check
#
# `verify` checks every row (finite numbers, right units, no duplicates, …) and recomputes a random sample with PySCF in float64, tightly converged. If a bound is exceeded it exits with an error, and this notebook would stop here.

# %%
qm1b("verify data --sample 24")

# %%
display(Image(filename=work / "data" / "verify.png", width=700))

# %% [markdown]
# 1 meV is 1/43 of a kcal/mol. float32 is this good because long sums are kept in twice the precision; the notebook *float32-DFT* shows how. The check does *not* say how good B3LYP/STO-3G itself is:
# with a minimal basis, gaps and energies are electronvolts away from experiment. The data are for developing methods, not for chemistry.
#
# ## 5. Distributions

# %%
qm1b("stats data")

# %%
gap = np.array([(r["lumo"] - r["homo"]) * HARTREE_TO_EV for r in rows])
pi_bond = np.array([any(c in r["smiles"] for c in "=#") for r in rows])
oxygen = np.array([8 in r["numbers"] for r in rows])
dipole = np.array([np.linalg.norm(r["dipole"]) for r in rows]) * 2.541746
fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
bins = np.linspace(gap.min(), gap.max(), 30)
left.hist(
    [gap[pi_bond], gap[~pi_bond]],
    bins,
    stacked=True,
    label=["with a double or triple bond", "without"],
    color=["#b23a48", "#33658a"],
)
left.set(xlabel="HOMO-LUMO gap / eV", ylabel="rows", ylim=(0, 30))
left.legend(frameon=False, fontsize=8)
right.hist(
    [dipole[oxygen], dipole[~oxygen]],
    25,
    stacked=True,
    label=["with oxygen", "without"],
    color=["#b23a48", "#33658a"],
)
right.set(xlabel="dipole moment / debye")
right.legend(frameon=False, fontsize=8)
plt.show()
print(
    f"mean gap with a multiple bond {gap[pi_bond].mean():.2f} eV, without {gap[~pi_bond].mean():.2f} eV"
)

# %% [markdown]
# ## 6. Parquet, pandas, and a split by molecule
#
# The export has QM1B's columns and units (energies in eV, positions in Bohr), and some more columns:

# %%
qm1b("export data molecules.parquet")
table = pd.read_parquet(work / "molecules.parquet")
print(*table.columns, sep=", ")
table[["smile", "conformer", "energy", "homo", "lumo", "y", "mulliken_charges"]].head()

# %%
summary = table.groupby("smile").agg(
    conformers=("conformer", "size"), gap_eV=("y", "mean"), spread_eV=("energy", np.ptp)
)
summary.sort_values("gap_eV").round(3).head(8)

# %% [markdown]
# `y` is the gap. For training, rows are split by *molecule*: if conformers of one molecule were on both sides, the test would measure memory.

# %%
qm1b("split data --out splits")
for path in sorted((work / "splits").glob("*.parquet")):
    part = pd.read_parquet(path)
    print(f"{path.name:16} {len(part):4} rows of {part['smile'].nunique():3} molecules")

# %% [markdown]
# ## 7. The same rows, made on a simulated IPU
#
# QM1B was made on IPUs. With `--machine bow` the program of a simulated Bow IPU computes the rows: integrals in families of shell quartets, an eigensolver of rotations, 1,472 tiles. Each row also has the price of its own run, between perfect and compiled code.

# %%
few = ["NC=O", "CC#N", "C1CO1", "C1CC1"]
(work / "few.smi").write_text("\n".join(few) + "\n")
qm1b("generate few.smi --out cpu --conformers 2", n_last=3)
qm1b("generate few.smi --out bow --conformers 2 --machine bow", n_last=3)

# %%
cpu, bow = (list(dataset.load(work / name)) for name in ("cpu", "bow"))
pd.DataFrame(
    {
        "smiles": [row["smiles"] for row in cpu],
        "energy, cpu / hartree": [f"{row['energy']:.4f}" for row in cpu],
        "energy, bow / hartree": [f"{row['energy']:.4f}" for row in bow],
        "within 1 meV": [
            abs(one["energy"] - two["energy"]) * HARTREE_TO_EV < 1e-3
            for one, two in zip(cpu, bow, strict=True)
        ],
        "SCF cycles, bow": [row["cycles"] for row in bow],
        "IPU Mcycles, low": [round(row["ipu_cycles_low"] / 1e6, 1) for row in bow],
        "IPU Mcycles, high": [round(row["ipu_cycles_high"] / 1e6, 1) for row in bow],
        "fullest tile / KiB": [row["ipu_fullest_tile_bytes"] // 1024 for row in bow],
    }
)

# %% [markdown]
# ## Where to go from here
#
# * `qm1b generate --help`: other levels of theory, relaxed or rattled conformers, several machines.
# * [`docs/data-format.md`](../docs/data-format.md) lists every column with its unit; `qm1b card data` writes a datasheet.
# * *SchNet-training* learns the gap from such a table.
