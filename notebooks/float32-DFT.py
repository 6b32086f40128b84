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
# # DFT with seven digits
#
# **What you will learn.** What float32 does to the energy of a molecule, operation by operation; which values occur at all; and how much each of this engine's remedies helps.
#
# **What you need.** The notebook *nanoDFT-demo*. About two minutes of computing on two cores.
#
# ```sh
# pip install ".[notebooks]"                        # in the checkout
# pip install jupyterlab && jupyter lab notebooks/
# ```

# %%
import tempfile
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image, display

import pyscf_ipu as pi
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.molecule.named.geometries import molecule_from_text
from pyscf_ipu.nanodft.dft import FUNCTIONALS, Theory, energy, integrals, numerics, scf
from pyscf_ipu.nanodft.table import pyscf_result
from pyscf_ipu.numerics.two_words import compensated_dot, difference, split

plt.rcParams.update({"figure.dpi": 90, "axes.spines.top": False, "axes.spines.right": False})
pi.enable_disk_cache()
MEV = 1e3 * HARTREE_TO_EV
WIDE, NARROW = (Theory(precision=name) for name in ("float64", "float32"))

# %% [markdown]
# ## 1. The size of the problem
#
# A float32 number has 24 binary digits. Some of the terms of benzene's energy are several times larger than their sum, and chemistry needs that sum to about a millionth:

# %%
benzene = molecule_from_text("benzene")
states = []
exact = scf(benzene, WIDE, on_cycle=states.append)
for name, value in (("total energy", exact.energy), *exact.terms._asdict().items()):
    step = np.spacing(np.float32(abs(value))) * MEV
    print(f"{name:21} {value:10.3f} Hartree; neighbouring float32 numbers are {step:.2f} meV apart")

# %% [markdown]
# ## 2. Which operation hurts?
#
# Take the converged float64 density, and compute the energy in float64 except for *one* operation in float32. How much does the energy change?

# %%
with numerics(WIDE):
    ints = integrals(benzene, WIDE)(jnp.asarray(benzene.positions))
    ints = type(ints)(*(np.asarray(x) for x in ints))


def single(*arrays):
    """Rounded to float32."""
    return [np.asarray(x, np.float32) for x in arrays]


def energy_at(density, at=ints):
    """E(D) in float64, Hartree."""
    with numerics(WIDE):
        total, _ = energy(jnp.asarray(density, float), at, "b3lyp")
    return float(total)


def running(terms):
    """A plain float32 sum, one number after the other."""
    return float(np.cumsum(np.asarray(terms, np.float32).ravel(), dtype=np.float32)[-1])


D, S = exact.density, ints.overlap
base = energy_at(D)
occupied = benzene.n_electrons // 2
J = np.einsum("ijkl,kl->ij", ints.repulsion, D)
found = {}
with numerics(WIDE):
    rounded = jnp.asarray(single(benzene.positions)[0], jnp.float64)
    moved = integrals(benzene, WIDE)(rounded)
found["coordinates rounded"] = energy_at(D, moved) - base
for label, field in (
    ("kinetic integrals rounded", "kinetic"),
    ("attraction integrals rounded", "nuclear"),
    ("repulsion integrals rounded", "repulsion"),
    ("grid weights rounded", "weights"),
    ("AO values rounded", "ao"),
):
    value = single(getattr(ints, field))[0].astype(float)
    found[label] = energy_at(D, ints._replace(**{field: value})) - base
d32, t32, v32, j32 = single(D, ints.kinetic, ints.nuclear, J)
found["sum of D T, one by one"] = running(d32 * t32) - np.sum(d32.astype(float) * t32)
found["sum of D V, one by one"] = running(d32 * v32) - np.sum(d32.astype(float) * v32)
found["sum of D J / 2, one by one"] = (running(d32 * j32) - np.sum(d32.astype(float) * j32)) / 2
with numerics(WIDE):
    rho = np.sum(ints.ao[0] * (D @ ints.ao[0]), axis=0)
    slope = 2 * np.sum(ints.ao[1:] * (D @ ints.ao[0]), axis=1)
    xc = np.asarray(FUNCTIONALS["b3lyp"][0](jnp.maximum(rho, 1e-15), np.sum(slope**2, axis=0)))
found["sum over the grid, one by one"] = running(xc * ints.weights) - np.sum(xc * ints.weights)


def orbitals_in(dtype):
    """Occupied orbitals from the converged Fock matrix, diagonalised in `dtype`."""
    s, f = S.astype(dtype), exact.fock.astype(dtype)
    values, vectors = np.linalg.eigh(s)
    x = (vectors / np.sqrt(values)) @ vectors.T
    _, c = np.linalg.eigh(x @ f @ x)
    return (x @ c)[:, :occupied]


C = orbitals_in(np.float32)
found["orbitals from a float32 eigh"] = energy_at(2 * C.astype(float) @ C.T.astype(float)) - base

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
names = sorted(found, key=lambda name: abs(found[name]))
ax.barh(names, [max(abs(found[n]) * MEV, 1e-6) for n in names], color="#33658a")
ax.axvline(1, color="grey", lw=0.8, ls=":")
ax.set(xscale="log", xlabel="|change of the energy| / meV")
plt.show()

# %% [markdown]
# Storing numbers in float32 is nearly harmless: rounding errors are independent and cancel. Two things hurt. In a long sum the running total is rounded at every step, by an amount that depends on the size of the *total*, not of the term.
# And if the orbitals are not quite orthonormal, the number of electrons is not quite right: even a missing millionth of an electron costs all of its energy.
#
# ## 3. Which values are there?
#
# How large are the numbers that an SCF computes with? Each frame shows how the values of one quantity are distributed over the powers of two. The tinted range is what float16 can hold, from $2^{-24}$ to $2^{16}$.

# %%
stages = [
    ("overlap S", S), ("kinetic T", ints.kinetic), ("attraction V", ints.nuclear),
    ("repulsion (ij|kl)", ints.repulsion), ("AOs on the grid", ints.ao[0]),
    ("gradients of AOs", ints.ao[1:]), ("grid weights", ints.weights), ("density on the grid", rho),
]  # fmt: skip
for k, state in enumerate(states, start=1):
    error = state.fock @ state.density @ S
    stages.append((f"Fock matrix, cycle {k}", state.fock))
    stages.append((f"commutator, cycle {k}", error - error.T))


AXIS = "power of two of the magnitude (tinted: the range of float16)"


def histogram(ax, name, values):
    """Powers of two of all values that are not zero."""
    values = np.abs(np.asarray(values)).ravel()
    powers = np.log2(values[values > 1e-30])
    ax.clear()
    ax.hist(powers, np.arange(-100, 12), color="#33658a", density=True)
    ax.axvspan(-24, 16, color="#b23a48", alpha=0.08)
    ax.set(xlim=(-100, 18), ylim=(0, 0.3), yticks=[], ylabel="share of values")
    ax.set_title(f"{name}: {len(powers):,} values", fontsize=9)


from matplotlib.animation import FuncAnimation, PillowWriter

fig, ax = plt.subplots(figsize=(5, 2.3), dpi=70, layout="constrained")
fig.supxlabel(AXIS, fontsize=9)
gif = Path(tempfile.mkdtemp()) / "values.gif"
animation = FuncAnimation(fig, lambda k: histogram(ax, *stages[k]), frames=len(stages))
animation.save(gif, writer=PillowWriter(fps=1.5))
plt.close(fig)
display(Image(data=gif.read_bytes(), format="gif"))

# %%
chosen = [1, 3, 4, 7, 9, len(stages) - 1]
fig, axes = plt.subplots(2, 3, figsize=(9, 3.4), layout="constrained")
for ax, k in zip(axes.flat, chosen, strict=True):
    histogram(ax, *stages[k])
fig.supxlabel(AXIS, fontsize=9)
plt.show()

# %% [markdown]
# float32 reaches from $2^{-149}$ to $2^{128}$, so its *range* is never a problem here; float16's would be. What is short is the number of digits, and only where large numbers of both signs are added up.
# The commutator shows the limit: it shrinks from cycle to cycle until, in float32, only rounding errors are left, and a convergence test must take that into account.
#
# ## 4. What each remedy buys
#
# **Compensated sums.** `compensated_dot` keeps the rounding error of every addition and product in a second float32 word. Below are dot products of random numbers whose terms have either sign (left) or one sign (right).
# Errors are divided by the sum of the terms' *magnitudes*; the sum itself may be much smaller if signs differ.

# %%
rng = np.random.default_rng(0)
lengths = 2 ** np.arange(8, 21, 2)


def errors_of_sums(a, b):
    """Errors of three ways to sum the products of a and b, over the sum of their magnitudes."""
    exact_terms = a.astype(float) * b
    pair = compensated_dot(jnp.asarray(a), jnp.asarray(b))
    sums = {
        "one by one": running(a * b),
        "pairwise (NumPy)": float(np.sum(a * b)),
        "compensated": float(pair.hi) + float(pair.lo),
    }
    size = np.sum(np.abs(exact_terms))
    return {name: abs(found - np.sum(exact_terms)) / size for name, found in sums.items()}


fig, axes = plt.subplots(1, 2, figsize=(8, 2.8), sharey=True, layout="constrained")
for ax, title, change in zip(axes, ("either sign", "one sign"), (np.array, np.abs), strict=True):
    pairs = [single(rng.normal(size=n), 1 + rng.normal(size=n)) for n in lengths]
    rows = [errors_of_sums(change(a), change(b)) for a, b in pairs]
    for name in rows[0]:
        ax.loglog(lengths, [max(row[name], 1e-18) for row in rows], "o-", ms=3, label=name)
    ax.set(title=f"terms of {title}", xlabel="terms of a dot product")
axes[0].set_ylabel("error / sum of magnitudes")
axes[1].legend(frameon=False, fontsize=8)
plt.show()

# %% [markdown]
# With either sign, the running total grows only as the square root of the number of terms and stays small compared with the sum of magnitudes. Its rounding errors are small as well and partly cancel, so the curve does not rise.
# With one sign, the total grows with every term, until each new term loses most of its digits, so the error rises. The sum over the grid is nearly of this kind: the xc energy density is negative everywhere, and few weights are.
# Pairwise sums add numbers of similar size, and are good in both cases.
#
# **Coordinates in two words.** Integrals depend on differences of positions. Far from the origin, a float32 coordinate has few digits left for them; with a second word nothing is lost.

# %%
away = 10.0 ** np.arange(0, 6)
bond = 2.1234567890123
one, two = [], []
for shift in away:
    a, b = np.array(shift), np.array(shift + bond)
    one.append(abs(float(np.float32(b) - np.float32(a)) - bond))
    two.append(abs(float(difference(split(b, np.float32), split(a, np.float32))) - bond))
fig, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
ax.loglog(away, np.maximum(one, 1e-9), "o-", ms=3, label="float32 coordinates")
ax.loglog(away, np.maximum(two, 1e-9), "o-", ms=3, label="two words each")
ax.set(xlabel="distance of the bond from the origin / Bohr", ylabel="error of its length / Bohr")
ax.legend(frameon=False, fontsize=8)
plt.show()

# %% [markdown]
# **Orthonormal orbitals.** A Newton–Schulz step, $C \leftarrow \tfrac12 C\,(3 - C^T S C)$, removes a good part of the error that `eigh` left; the engine does three. With orthonormal orbitals, the energy is wrong only by the *square* of their error.

# %%
again = C
for step in range(3):
    wide = again.astype(float)
    off = np.abs(wide.T @ S @ wide - np.eye(occupied)).max()
    electrons = 2 * np.trace(wide.T @ S @ wide) - benzene.n_electrons
    change = (energy_at(2 * wide @ wide.T) - base) * MEV
    print(
        f"{step} steps: largest element of C'SC - 1 {off:.0e}, electrons {electrons:+.1e},"
        f" energy {change:+.4f} meV"
    )
    again = again @ (
        np.float32(1.5) * np.eye(occupied, dtype=np.float32)
        - np.float32(0.5) * (again.T @ (S.astype(np.float32) @ again))
    )

# %% [markdown]
# ## 5. All of it together
#
# We compute eight molecules in four ways and compare with PySCF in float64: nanoDFT with plain float32 sums, and the engine in `float32` (no float64 on the device at all), `mixed` (a float32 SCF and one energy in float64), and `float64`.

# %%
smiles = ["CCCO", "CCOC", "CC(C)=O", "NCC=O", "CC(N)=O", "C1CCO1", "CC(=O)O", "NC(N)=O"]
molecules = [pi.Molecule.from_smiles(s) for s in smiles]
truth = np.array([pyscf_result(m, WIDE).result.energy for m in molecules])
errors = {"nanoDFT float32": [scf(m, NARROW).energy for m in molecules] - truth}
for precision in ("float32", "mixed", "float64"):
    found = pi.rks(molecules, xc="b3lyp", grid_level=0, precision=precision)
    errors[precision] = found.energy - truth
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for k, (name, error) in enumerate(errors.items()):
    ax.plot(
        [k] * len(error), np.maximum(np.abs(error) * MEV, 1e-10), "o", alpha=0.6, color="#33658a"
    )
    print(
        f"{name:16} mean absolute error {np.abs(error).mean() * MEV:.1e} meV, bias {error.mean() * MEV:+.1e}"
    )
ax.set_xticks(range(len(errors)), list(errors))
ax.axhline(1, color="grey", lw=0.8, ls=":")
ax.set(yscale="log", ylabel="|energy - PySCF's| / meV", xlim=(-0.5, 3.5))
plt.show()

# %% [markdown]
# The engine's float32 results also contain the errors of float32 *integrals*; nanoDFT took its integrals from PySCF in float64.
# `mixed` shows how little of the error comes from the density: its energy is evaluated in float64 at the density of a float32 SCF.
#
# ## Where to go from here
#
# * [`pyscf_ipu/numerics/two_words.py`](../pyscf_ipu/numerics/two_words.py): two-word arithmetic. [`docs/numerics.md`](../docs/numerics.md#what-each-remedy-buys): all remedies and their effects.
# * [Error bars](../docs/numerics.md#error-bars): these errors over hundreds of conformers.
