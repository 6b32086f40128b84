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
# # Electron repulsion, looked at
#
# **What you will learn.** What the tensor of electron repulsion integrals looks like, why an eighth of it is enough, and how Coulomb and exchange become *one* matrix.
# Then how tiles share the work of making it, and why screening, which is essential for large molecules, helps so little for small ones.
#
# **What you need.** The notebook *nanoDFT-demo*, or Hartree–Fock from a textbook. About a minute of computing.
#
# ```sh
# pip install ".[notebooks]"                        # in the checkout
# pip install jupyterlab && jupyter lab notebooks/
# ```

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap, LogNorm, hsv_to_rgb

import pyscf_ipu as pi
from pyscf_ipu.interop import integrals
from pyscf_ipu.molecule.named.geometries import molecule_from_text
from pyscf_ipu.shapes.shape import shape_of
from pyscf_ipu.shapes.tile_plan import tile_plan

plt.rcParams.update({"figure.dpi": 90})
settings = pi.Settings(basis="sto-3g", precision="float64", grid_level=0)

# %% [markdown]
# ## 1. Four indices
#
# $(ij|kl) = \int\!\!\int \chi_i(r)\chi_j(r)\,\frac{1}{|r-r'|}\,\chi_k(r')\chi_l(r')\,dr\,dr'$ is the repulsion between two charge clouds, $\chi_i\chi_j$ and $\chi_k\chi_l$. Here is the whole tensor for water.
# The picture is a table of tables: the large one has rows $i$ and columns $j$, and each of its cells is a small one with rows $k$ and columns $l$.

# %%
import jax

water = molecule_from_text("water")
with jax.enable_x64(True):
    eri = np.asarray(integrals(water, settings)(jax.numpy.asarray(water.positions)).repulsion)


def mole_of(molecule, settings):
    """PySCF's molecule with our basis."""
    return settings.pyscf_mole(molecule.numbers, molecule.positions)


check = mole_of(water, settings).intor("int2e")
n = len(eri)
print(
    f"{n} AOs, {eri.size} integrals; largest difference from PySCF {np.abs(eri - check).max():.0e}"
)


def table_of_tables(tensor):
    """(N, N, N, N) as a picture with lines between the cells."""
    n = len(tensor)
    image = np.full((n, n + 1, n, n + 1), np.nan)
    image[:, :n, :, :n] = tensor.transpose(0, 2, 1, 3)
    return image.reshape(n * (n + 1), n * (n + 1))[:-1, :-1]


labels = [" ".join(label.split()[1:]) for label in mole_of(water, settings).ao_labels()]
fig, ax = plt.subplots(figsize=(5.8, 5), layout="constrained")
shown = ax.imshow(
    table_of_tables(np.maximum(np.abs(eri), 1e-6)), norm=LogNorm(1e-5, 5), cmap="viridis"
)
middle = np.arange(n) * (n + 1) + (n - 1) / 2
ax.set_xticks(middle, labels, rotation=90)
ax.set_yticks(middle, labels)
fig.colorbar(shown, ax=ax, label="|(ij|kl)| / Hartree")
plt.show()
zero = np.mean(np.abs(eri) < 1e-10)
print(
    f"largest {eri.max():.3f} Hartree, (1s 1s|1s 1s); {zero:.0%} are zero, most of them by symmetry"
)

# %% [markdown]
# Oxygen's 2p orbital out of the plane (2px) changes sign on reflection, so every integral in which it occurs an odd number of times vanishes. That explains most of the dark cells, and most of the dark lines within cells.
#
# ## 2. Eight at once
#
# Swapping $i$ and $j$, or $k$ and $l$, or the two pairs, changes nothing. So up to eight places of the tensor hold the same number.

# %%
perms = [(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (1, 0, 3, 2)]
perms += [(c, d, a, b) for a, b, c, d in perms]
for p in perms:
    assert np.allclose(eri, eri.transpose(p), atol=1e-12)
index = np.arange(n**4).reshape((n,) * 4)
first = np.min([index.transpose(p) for p in perms], axis=0)
unique, copies = np.unique(first, return_counts=True)
pairs = n * (n + 1) // 2
print(f"{n**4} places, {len(unique)} different ones = {pairs} ({pairs} + 1) / 2")
for times in (1, 2, 4, 8):
    print(f"  {np.sum(copies == times):4} numbers stand in {times} places")

i, j, k, l = 4, 1, 5, 3
orbit = np.zeros((n,) * 4)
for p in perms:
    orbit[tuple(np.array((i, j, k, l))[list(p)])] += 1
fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
axes[0].imshow(table_of_tables(np.where(orbit > 0, 1.0, 0.1)), cmap="Reds", vmin=0, vmax=1)
axes[0].set_title(f"where ({labels[i]} {labels[j]}|{labels[k]} {labels[l]}) stands", fontsize=9)
axes[1].imshow(table_of_tables(np.where(first == index, 1.0, 0.1)), cmap="Blues", vmin=0, vmax=1)
axes[1].set_title("one place of each number", fontsize=9)
for ax in axes:
    ax.set_xticks(middle, labels, rotation=90, fontsize=8)
    ax.set_yticks(middle, labels, fontsize=8)
plt.show()

# %% [markdown]
# ## 3. The pair matrix
#
# If a pair $i \ge j$ is one index, the tensor is a symmetric matrix. For benzene:

# %%
benzene = mole_of(molecule_from_text("benzene"), settings)
full = benzene.intor("int2e")
N = len(full)
a, b = np.tril_indices(N)
pair_matrix = full[a, b][:, a, b]
order = np.argsort(-np.diag(pair_matrix))


def coarse(matrix, size=9):
    """The largest magnitude of every size x size block: a smaller picture."""
    n = len(matrix) // size
    blocks = np.abs(matrix[: n * size, : n * size]).reshape(n, size, n, size)
    return np.maximum(blocks.max(axis=(1, 3)), 1e-12)


fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
shown = axes[0].imshow(
    coarse(pair_matrix[np.ix_(order, order)]), norm=LogNorm(1e-10, 5), interpolation="nearest"
)
axes[0].set(title=f"{len(a)} pairs, largest self-repulsion first", xticks=[], yticks=[])
fig.colorbar(shown, ax=axes[0], label="Hartree")
values = np.linalg.eigvalsh(pair_matrix)[::-1]
axes[1].semilogy(np.maximum(values, 1e-14))
axes[1].set(title="its eigenvalues", xlabel="number", ylabel="Hartree")
plt.show()
print(f"{N} AOs, {len(a)} pairs; eigenvalues above 1e-6 Hartree: {np.sum(values > 1e-6)}")

# %% [markdown]
# The matrix is positive, because it gives the energy of charge clouds with themselves. The corner of small values follows from Schwarz's inequality, $|(ij|kl)|^2 \le (ij|ij)(kl|kl)$. And the eigenvalues fall
# fast, since many pairs are nearly the same cloud; density fitting makes use of this.
#
# ## 4. Coulomb and exchange in one matrix
#
# An SCF needs $J_{ij} = \sum_{kl} (ij|kl) D_{kl}$ and a fraction $x$ of $K_{ij} = \sum_{kl} (ik|jl) D_{kl}$. Since $D$ is symmetric, both are contained in
#
# $$G_{ij,kl} = (ij|kl) - \tfrac{x}{4}\,[(ik|jl) + (il|jk)]$$
#
# over pairs $i \ge j$, $k \ge l$. The whole two-electron part of the Fock matrix is then one product of a matrix with a vector.

# %%
x = 0.2  # B3LYP
exchange = full.transpose(0, 2, 1, 3)[a, b][:, a, b], full.transpose(0, 2, 3, 1)[a, b][:, a, b]
G = pair_matrix - x / 4 * (exchange[0] + exchange[1])

density = benzene.RHF().get_init_guess(key="minao")
packed = density[a, b] * np.where(a == b, 1, 2)
J = np.einsum("ijkl,kl->ij", full, density)
K = np.einsum("ikjl,kl->ij", full, density)
print(f"G d against J - x K / 2: {np.abs(G @ packed - (J - x / 2 * K)[a, b]).max():.0e} Hartree")
print(
    f"numbers read in a cycle: {2 * N**4:,} for J and K from the tensor, {G.size:,} from G, "
    f"{len(a) * (len(a) + 1) // 2:,} from its half"
)

# %%
fig, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
parts = {
    "Coulomb: (ij|kl)": pair_matrix,
    "exchange: x/4 [(ik|jl) + (il|jk)]": x / 4 * (exchange[0] + exchange[1]),
    "G": G,
}
for ax, (title, matrix) in zip(axes, parts.items(), strict=True):
    shown = ax.imshow(coarse(matrix), norm=LogNorm(1e-8, 5), interpolation="nearest")
    ax.set_title(title, fontsize=10)
    ax.set(xticks=[], yticks=[])
fig.colorbar(shown, ax=axes, label="Hartree", shrink=0.8)
plt.show()

# %% [markdown]
# The engine keeps the lower half of $G$ and reads it once per cycle, because reading is what the product costs.
#
# ## 5. How tiles share the work
#
# Shell pairs with equal angular momenta form a *class*, and a class is cut into *strips*. A strip against a strip is a *block*, the work of one tile. Blocks are assigned in order of cost, the costliest first,
# each to the tile that has least to do so far.

# %%
shape = shape_of(molecule_from_text("benzene").numbers, "sto-3g", False, 0, pad=False)
N_TILES = 24
plan = tile_plan(shape, n_tiles=N_TILES, strip_primitives=36)
owner, middles = np.full((plan.n_rows, plan.n_rows), np.nan), {}
for block in plan.blocks:
    bra, ket = plan.strips[block.bra], plan.strips[block.ket]
    height, width = bra.pairs_per_strip * bra.n_products, ket.pairs_per_strip * ket.n_products
    for p, q, tile in zip(block.bra_strip, block.ket_strip, block.tiles, strict=True):
        row, column = bra.first_row + p * height, ket.first_row + q * width
        owner[row : row + height, column : column + width] = tile
        if min(height, width) >= 32:
            middles[row + height / 2, column + width / 2] = tile
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
# A tile is a colour, 8 hues times 3 shades, the same in both pictures; large blocks have its number.
hues, shades = np.arange(N_TILES) % 8 / 8, np.array([1.0, 0.75, 0.5])[np.arange(N_TILES) // 8]
colours = hsv_to_rgb(np.stack([hues, np.sqrt(1.25 - shades), shades], axis=1))
axes[0].imshow(owner[::2, ::2], cmap=ListedColormap(colours), interpolation="nearest")
for (row, column), tile in middles.items():
    ink = "black" if shades[tile] > 0.6 else "white"
    axes[0].text(column / 2, row / 2, tile, ha="center", va="center", color=ink, fontsize=8)
edges = [s.first_row / 2 for s in plan.strips[1:]]
axes[0].set(title=f"which of {N_TILES} tiles computes what", xticks=[], yticks=[])
for edge in edges:
    axes[0].axhline(edge, color="black", lw=0.6)
    axes[0].axvline(edge, color="black", lw=0.6)
load = plan.load()
axes[1].bar(range(N_TILES), load / load.max(), color=colours)
axes[1].set(title=f"load of each tile, balance {plan.balance():.3f}", xlabel="tile")
plt.show()
print(f"{sum(len(block.tiles) for block in plan.blocks)} blocks of {len(plan.blocks)} class pairs")

# %% [markdown]
# How many tiles can be kept busy depends on the size of the pieces. Longer strips have less overhead; shorter ones can be shared among more tiles.

# %%
tiles = np.unique(np.logspace(0, np.log10(1472), 16).astype(int))
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for primitives in (288, 72, 18):
    balance = [tile_plan(shape, int(t), primitives).balance() for t in tiles]
    ax.semilogx(tiles, balance, "o-", ms=3, label=f"strips of {primitives} primitive pairs")
ax.set(xlabel="tiles", ylabel="mean over largest load", ylim=(0, 1.05))
ax.legend(frameon=False, fontsize=8)
plt.show()

# %% [markdown]
# ## 6. What could be left out
#
# In a large molecule most pairs are far apart and their products are zero. How large is large? For alkane chains, we count all integrals below a threshold:

# %%
lengths = (1, 2, 3, 4, 5, 6, 7, 8)
small = {1e-6: [], 1e-8: [], 1e-10: []}
aos = []
for length in lengths:
    alkane = mole_of(pi.Molecule.from_smiles("C" * length), settings)
    values = np.abs(alkane.intor("int2e", aosym="s8"))
    aos.append(alkane.nao)
    for threshold, found in small.items():
        found.append(np.mean(values < threshold))
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for threshold, found in small.items():
    ax.plot(lengths, 100 * np.array(found), "o-", ms=4, label=f"below {threshold:.0e} Hartree")
ax.set(xlabel="carbon atoms", ylabel="per cent of all integrals", ylim=(0, 100))
ax.legend(frameon=False)
plt.show()
print(f"{aos[-1]} AOs at {lengths[-1]} carbons: {small[1e-8][-1]:.0%} below 1e-8 Hartree")

# %% [markdown]
# The chains are as RDKit folds them; stretched out, they would have somewhat more small integrals. The errors of omitted integrals add up over the whole tensor, so the threshold must be far below the acceptable error.
# So there is only a small factor to gain here, and omitting whole integrals would make the plan depend on the geometry. The engine therefore keeps every integral in its place: one shape, one program, one plan.
# On CPUs its codelets skip only primitive pairs and quartets that cannot contribute 10⁻¹⁰ Hartree ([lab notes](../docs/lab-notes.md#electron-repulsion)).
#
# ## Where to go from here
#
# * The code is in [`pyscf_ipu/integrals/supermatrix.py`](../pyscf_ipu/integrals/supermatrix.py) ($G$) and [`pyscf_ipu/shapes/tile_plan.py`](../pyscf_ipu/shapes/tile_plan.py) (the plan).
# * *simulated-IPU* prices such plans in cycles.
