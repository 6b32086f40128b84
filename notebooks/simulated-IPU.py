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
# # A machine of 1,472 small processors, simulated
#
# **What you will learn.** How a program is priced in cycles on a Graphcore IPU, how to read the profile of a whole SCF, how to find the bottleneck, how to change the plan and see the bottleneck move, how to write a vertex, and what sixteen replicas cost.
#
# **What you need.** About two minutes of computing on two cores, and no IPU.
#
# ```sh
# pip install ".[notebooks]"                        # in the checkout
# pip install jupyterlab && jupyter lab notebooks/
# ```
#
# What is modelled, and how far to trust it: [`docs/simulated-ipu.md`](../docs/simulated-ipu.md). Every cost is an interval: *low* is hand-written code, *high* is compiled C++.

# %%
import tempfile
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

import pyscf_ipu as pi
from pyscf_ipu.ipu import BOW, GC200, jacobi_eigh, machine_of, simulate, target
from pyscf_ipu.ipu.profile.data import Repeat
from pyscf_ipu.ipu.report.diff import diff
from pyscf_ipu.molecule.named.geometries import molecule_from_text
from pyscf_ipu.tiles import tile_map, tile_put_replicated, tile_put_sharded

pi.enable_disk_cache()  # a program that is priced twice is compiled once
plt.rcParams.update({"figure.dpi": 90, "axes.spines.top": False, "axes.spines.right": False})

# %% [markdown]
# ## 1. The machine
#
# An IPU consists of many *tiles*, each a processor with its own memory: there is no cache and no shared memory. A program repeats three steps: all tiles compute, all wait for the last (*sync*), then data move
# between them (*exchange*). So the slowest tile and the busiest wire decide how long it takes.

# %%
for name in (
    "tiles_per_ipu",
    "num_worker_contexts",
    "memory_bytes_per_tile",
    "tile_clock_frequency",
    "exchange_bytes_per_cycle",
):
    bow, gc200 = BOW.quantities()[name], GC200.quantities()[name]
    print(f"{name:26} Bow {bow.value:<14,.10g} GC200 {gc200.value:<14,.10g} {bow.unit}")

# %% [markdown]
# `simulate` runs a JAX function on this machine and prices it for the IPU. Let us add two vectors, and sum one, for growing lengths:


# %%
def cycles(fn, *args):
    """Low cycles by kind: compute, exchange, sync."""
    _, profile = simulate(fn, BOW)(*args)
    return {kind: c.low for kind, c in profile.total_by("kind").items()}


sizes = 2 ** np.arange(6, 23, 2)
add = [cycles(lambda x, y: x + y, jnp.ones(n), jnp.ones(n)) for n in sizes]
total = [cycles(jnp.sum, jnp.ones(n)) for n in sizes]
fig, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
for ax, title, found in ((axes[0], "x + y", add), (axes[1], "sum of x", total)):
    for kind in ("compute", "exchange", "sync"):
        values = np.array([c.get(kind, 0) for c in found])
        if values.any():
            ax.loglog(sizes, np.where(values > 0, values, np.nan), "o-", ms=3, label=kind)
    ax.set(title=title, xlabel="numbers")
    ax.legend(frameon=False, fontsize=8)
axes[0].set_ylabel("cycles, low")
plt.show()

# %% [markdown]
# A short vector costs the launch of a compute set, whatever its length; the cost of a long one is proportional to its length. An addition needs no exchange when both vectors are on the same tiles in the same way.
# A sum also has to bring its parts together, by syncs and an exchange; for short vectors this costs most.
#
# ## 2. A whole SCF, with a careless plan
#
# The engine's program is the same on every machine. A `Machine` sets three things: how integrals are computed, how eigenvectors are computed, and over how many tiles the grid is spread.
# Let us begin with a plan that looks reasonable: grid points on 64 tiles, and Jacobi's eigensolver started afresh in every cycle.

# %%
mol = molecule_from_text("water")
settings = pi.Settings(basis="sto-3g", xc="b3lyp", grid_level=0, fixed_cycles=6)


def careless(shape):
    """Grid on 64 tiles; eigenvectors always to full precision, from nothing."""

    def cold_eigh(matrix, start, accuracy):
        del start, accuracy
        values, vectors, _ = jacobi_eigh(matrix)
        return values, vectors

    return replace(machine_of(BOW, 1, shape), eigh=cold_eigh, grid_tiles=64)


def profile_on(target, machine):
    """One SCF of the molecule, its energy in Hartree, and its profile."""
    core, arguments = pi.rks_core(mol, settings, machine)
    solution, profile = simulate(core, target)(*arguments)
    energy = sum(float(term.hi) + float(term.lo) for term in solution.terms)
    print(f"{profile.target}: energy {energy:.5f} Hartree in {int(solution.cycles)} SCF cycles")
    return profile


first = profile_on(BOW, careless)
low, high = first.seconds.low * 1e3, first.seconds.high * 1e3
print(f"{first.cycles.low:,.0f} to {first.cycles.high:,.0f} cycles, {low:.2f} to {high:.2f} ms")


# %%
def stages(ax, profiles):
    """Bars of cycles by stage: low as colour, up to high as outline."""
    names = list(profiles[next(iter(profiles))].total_by("stage"))
    for k, (label, profile) in enumerate(profiles.items()):
        found = profile.total_by("stage")
        at = np.arange(len(names)) + (k - (len(profiles) - 1) / 2) * 0.8 / len(profiles)
        height = 0.75 / len(profiles)
        lows = [found[n].low / 1e6 for n in names]
        highs = [found[n].high / 1e6 for n in names]
        bars = ax.barh(at, lows, height, label=label)
        ax.barh(at, highs, height, fill=False, edgecolor=bars[0].get_facecolor(), lw=0.8)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set_xlabel("million cycles: hand-written (filled), compiled C++ (outline)")
    ax.legend(frameon=False)


fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
stages(ax, {"careless plan": first})
plt.show()

# %% [markdown]
# ## 3. Read the timeline
#
# The program is a tree of steps and loops. Here are the steps in order, each as wide as all the cycles that it takes. Each loop body is shown once, and steps of the same stage have the same colour. Grey is *other*: steps that belong to no stage.


# %%
def flat(program, times=1.0):
    """(step, how often it ran) in the order of the program."""
    for node in program:
        if isinstance(node, Repeat):
            yield from flat(node.body, times * node.count)
        else:
            yield node, times


def timeline(ax, profile, colours):
    """Three lanes (compute, exchange, sync) along the program."""
    at = 0.0
    for step, times in flat(profile.program):
        if step.kind == "host":
            continue
        width = step.cycles.low * times / 1e6
        lane = ("compute", "exchange", "sync").index(step.kind)
        ax.barh(lane, width, left=at, height=0.8, color=colours[step.stage or "other"])
        at += width
    ax.set_yticks(range(3), ["compute", "exchange", "sync"])
    ax.invert_yaxis()


names = list(first.total_by("stage"))  # the costliest first
strong, pale = plt.cm.tab20.colors[::2], plt.cm.tab20.colors[1::2]
bright = iter([*strong[:7], *strong[8:], *pale[:7], *pale[8:]])  # without greys
colours = {name: "lightgrey" if name == "other" else next(bright) for name in names}
fig, ax = plt.subplots(figsize=(9, 2.8), layout="constrained")
timeline(ax, first, colours)
ax.set_xlabel("million cycles")
handles = [plt.Rectangle((0, 0), 1, 1, color=c) for c in colours.values()]
fig.legend(handles, names, loc="outside right", frameon=False, fontsize=8)
plt.show()
for kind, c in first.total_by("kind").items():
    print(f"{kind:9} {c.low / first.cycles.low:6.1%}")

# %% [markdown]
# And where in the machine? Each small square is a tile, coloured by its compute cycles. A few tiles work, the others wait for them.


# %%
def tiles(ax, profile, limit):
    image = profile.tile_compute.reshape(32, 46)
    shown = ax.imshow(image / 1e3, cmap="magma_r", vmin=0, vmax=limit / 1e3)
    ax.set(xticks=[], yticks=[])
    return shown


fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
fig.colorbar(tiles(ax, first, first.tile_compute.max()), ax=ax, label="thousand cycles")
plt.show()
busy, mean = first.tile_compute.max(), first.tile_compute.mean()
print(f"busiest tile {busy:,.0f} cycles, mean of all {mean:,.0f}")
for stage, balance in first.balance_by_stage().items():
    print(f"{stage:18} mean over busiest tile {balance:5.2f}")

# %% [markdown]
# ## 4. Change the plan
#
# Two things stand out. The eigensolver starts from nothing, although the orbitals of the previous cycle are nearly right. And the grid keeps only 64 of the 1,472 tiles busy. The plan of
# `machine_of` starts Jacobi's rotations from the last orbitals, stops them early while the density is still rough, and spreads the grid over all tiles.

# %%
second = profile_on(BOW, lambda shape: machine_of(BOW, 1, shape))
fig, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
stages(ax, {"careless plan": first, "the engine's plan": second})
plt.show()

# %%
fig, axes = plt.subplots(2, 1, figsize=(9, 3.6), sharex=True, layout="constrained")
for ax, profile, title in zip(axes, (first, second), ("careless", "the engine's"), strict=True):
    timeline(ax, profile, colours)
    ax.set_title(title, fontsize=10)
axes[1].set_xlabel("million cycles")
fig.legend(handles, names, loc="outside right", frameon=False, fontsize=8)
plt.show()
faster = first.cycles.low / second.cycles.low
top = list(second.total_by("stage"))[:3]
print(f"{faster:.2f} times fewer cycles; what costs most now: {', '.join(top)}")

# %%
print(diff(first, second))

# %% [markdown]
# Removing a bottleneck always shows the next one. For a molecule of this size, many of the remaining stages do so little that they cost mostly launch, sync and exchange, and no plan of the arithmetic can help.
#
# ## 5. Bow and GC200
#
# A Bow is a GC200 with a faster clock: the same number of cycles takes less time.

# %%
older = profile_on(GC200, lambda shape: machine_of(GC200, 1, shape))
for profile in (second, older):
    ms = profile.seconds * 1e3
    print(
        f"{profile.target:6} {profile.cycles.low:12,.0f} cycles  {ms.low:.2f} to {ms.high:.2f} ms"
    )

# %% [markdown]
# ## 6. Write a vertex
#
# A *vertex* is what one worker of one tile does in a compute set: here, a plain JAX function of one tile's rows. Its cycles are counted from its program, so nothing has to be declared.
# A tile has six workers that take turns, so six vertices on one tile take as long as one, and the seventh starts a second round. A vertex whose work is `shared` uses all six.


# %%
def damp(row):
    return jnp.exp(-row * row)


def vertex_cycles(tiles, shared=False, length=512):
    rows = np.ones((len(tiles), length), np.float32)

    def fn(x):
        placed = tile_put_sharded(x, tiles)
        return tile_map(damp, placed, name="damp", shared=shared).array

    _, profile = simulate(fn, BOW)(rows)
    return next(s.cycles for s, _ in profile.steps() if s.kind == "compute")


counts = range(1, 19)
one_tile = [vertex_cycles((1,) * k).low for k in counts]
many_tiles = [vertex_cycles(tuple(range(1, k + 1))).low for k in counts]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.step(counts, one_tile, where="mid", label="all on tile 1")
ax.plot(counts, many_tiles, "o-", ms=3, label="a tile for each")
ax.set(xlabel="vertices of 512 numbers", ylabel="cycles, low", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
alone, shared = vertex_cycles((1,)), vertex_cycles((1,), shared=True)
print(f"one vertex: {alone.low:,.0f} cycles alone, {shared.low:,.0f} shared by six workers")
print(f"as compiled C++: {alone.high:,.0f}")

# %% [markdown]
# The page that `profile.to_html` writes shows the same: here seven vertices share tile 1 and six more have a tile each, and 1,465 tiles wait. So its first finding is the balance.
#
# ![The page of thirteen vertices: cards, findings and the timeline](data/page-vertex.png)
#
# ## 7. Make a matrix–vector product fast
#
# J = E v, the Coulomb matrix from stored integrals, does two operations for every number that it reads. So it can run no faster than the tiles read their memories: 65 TB/s for all of them together.
# Three ways to write it: as an ordinary product, as a product of elements and a sum, and as vertices that keep their rows of E on their tiles.

# %%
rows_of_e, columns_of_e = 8 * 1471, 1024
e = np.ones((rows_of_e, columns_of_e), np.float32)
v = np.ones(columns_of_e, np.float32)


def ordinary(e, v):
    return e @ v


def by_elements(e, v):
    return jnp.sum(e * v, axis=1)


def by_vertices(e, v):
    """Eight rows on each tile; v travels once, to all of them."""
    placed = tile_put_sharded(e.reshape(1471, 8, -1), tuple(range(1, 1472)))
    everywhere = tile_put_replicated(v, placed.tiles)
    return tile_map(lambda a, x: a @ x, placed, everywhere, name="e_v", shared=True).array


ways = {"ordinary": ordinary, "by elements": by_elements, "by vertices": by_vertices}
for name, fn in ways.items():
    _, profile = simulate(fn, BOW, resident=(0,))(e, v)
    compute = [s for s, _ in profile.steps() if s.kind == "compute"]
    busiest = max(compute, key=lambda s: s.memory_bytes)
    rate = busiest.memory_bytes / (busiest.cycles.low / profile.clock_hz) / 1e12
    whole = profile.rates()["all"]
    print(
        f"{name:12} {profile.cycles.low:9,.0f} cycles, bound by {whole.bound:8}; "
        f"its largest compute set reads {rate:5.1f} TB/s"
    )

# %% [markdown]
# ![The page of the vertices: one short compute set behind a long exchange](data/page-product.png)
#
# A tile loads at most 16 bytes in a cycle while it computes, 44 TB/s for all of them; 65 TB/s counts stores, too. The vertices reach that limit: memory is what they wait for. What is left to gain is the exchange: what does not have to travel costs nothing.
#
# ## 8. Sixteen replicas
#
# Datasets and trainings use a Pod in another way: every IPU runs the same program on data of its own. A training adds up the gradients of all replicas in each update, in rings over the links. Here is one layer, with its gradient, from one to 256 IPUs.


# %%
def layer(weights, x):
    gradient = lax.psum(x.T @ jnp.tanh(x @ weights), "replica")
    return weights - 1e-3 * gradient


mesh = Mesh(np.array(jax.devices()[:1]), ("replica",))
stay, split = PartitionSpec(), PartitionSpec("replica")
step = jax.shard_map(layer, mesh=mesh, in_specs=(stay, split), out_specs=stay, check_vma=False)
weights, x = np.ones((1024, 1024), np.float32), np.ones((512, 1024), np.float32)
shares = {}
for ipus in (1, 4, 16, 64, 256):
    system = target("bow") if ipus == 1 else target(f"bow-pod{ipus}")
    _, profile = simulate(step, system, replicas=ipus, resident=(0,))(weights, x)
    reduce = sum(s.cycles.low * n for s, n in profile.steps() if s.name == "psum")
    shares[ipus] = profile.cycles.low - reduce, reduce
    print(f"{system.name:10} {ipus:3} replicas: {profile.cycles.low:9,.0f} cycles an update")

# %%
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
names = [str(n) for n in shares]
own, ring = np.array(list(shares.values())).T / 1e3
ax.bar(names, own, label="each replica's own work")
ax.bar(names, ring, bottom=own, label="all-reduce")
ax.set(xlabel="replicas", ylabel="thousand cycles an update")
ax.legend(frameon=False)
plt.show()
_, profile = simulate(step, target("bow-pod16"), replicas=16, resident=(0,))(weights, x)
for row in profile.ipus()[:3]:
    print(f"IPU {row.ipu}, machine {row.machine}: busy {row.busy:.0%} of the time")

# %% [markdown]
# ![The page of sixteen replicas: two products, and the all-reduce behind them](data/page-replicas.png)
#
# The own work does not grow, so sixteen replicas learn from nearly sixteen times as much, as long as the all-reduce stays small: give each replica more data for an update (gradient accumulation) where it does not.
# `schnet price` does this for SchNet's real training step, and `qm1b plan --ipu` for a dataset.
#
# ## Where to go from here
#
# You can write the profile as an interactive page with every step, and as a trace for Perfetto:

# %%
out = Path(tempfile.mkdtemp())
second.to_html(out / "profile.html", older)
second.to_trace(out / "profile.trace")
for path in sorted(out.iterdir()):
    print(f"{path.name} {path.stat().st_size / 1e6:.1f} MB")

# %% [markdown]
# * From a shell: `pyscf-ipu profile --smiles CCO --target bow --html profile.html --compare gc200`.
# * Your own function: `simulate` takes any JAX function of float32 arrays; TessellateIPU's functions (`tile_map`, …) place its parts on tiles.
