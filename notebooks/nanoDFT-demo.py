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
# # Density functional theory, step by step
#
# **What you will learn.** How the energy of a molecule becomes a function of a matrix, how the self-consistent field (SCF) finds its minimum, and where the method breaks down.
# Also what orbitals look like, and how forces lead to a geometry.
#
# **What you need.** Python, matrices, and the idea that an electron in a molecule is a wave. About two minutes of computing on two cores.
#
# ```sh
# pip install ".[notebooks]"                        # in the checkout
# pip install jupyterlab && jupyter lab notebooks/
# ```
#
# Everything is computed by [`pyscf_ipu/nanodft/dft.py`](../pyscf_ipu/nanodft/dft.py), which has 450 lines and is meant to be read beside this notebook.
# Where there are many calculations, the fast engine `pyscf_ipu` does them. PySCF checks the results.

# %%
import tempfile
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import pyscf_ipu as pi
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, HARTREE_TO_EV
from pyscf_ipu.molecule.named.geometries import molecule_from_text
from pyscf_ipu.nanodft.dft import Theory, energy_and_fock, integrals, mole_of, numerics, scf
from pyscf_ipu.nanodft.table import pyscf_result

plt.rcParams.update({"figure.dpi": 90, "axes.spines.top": False, "axes.spines.right": False})
pi.enable_disk_cache()  # a program that was compiled once is loaded the next time
level = Theory(basis="6-31g", xc="b3lyp", precision="float64", grid_level=0)
water = molecule_from_text("water")
water

# %% [markdown]
# ## 1. The integrals
#
# Orbitals are written as sums of *atomic orbitals* (AOs), fixed functions centred on the atoms. In the basis 6-31G, oxygen has one s function for its core
# and two of each kind for its valence shell; hydrogen has two s functions. All that DFT needs from them is a set of integrals:

# %%
with numerics(level):  # float64 inside
    ints = integrals(water, level)(jnp.asarray(water.positions))
labels = [" ".join(label.split()[1:]) for label in mole_of(water, level).ao_labels()]
print(f"{len(labels)} AOs: {', '.join(labels)}")
for name in ("overlap", "kinetic", "nuclear", "repulsion", "ao", "weights"):
    print(f"{name:10} {getattr(ints, name).shape}")

# %%
fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
for ax, name in zip(axes, ("overlap", "kinetic", "nuclear"), strict=True):
    matrix = np.asarray(getattr(ints, name))
    limit = np.abs(matrix).max() if name == "overlap" else 5
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
    ax.set_title(name)
    ax.set_xticks(range(len(labels)), labels, rotation=90, fontsize=8)
    ax.set_yticks(range(len(labels)), labels, fontsize=8)
    fig.colorbar(image, ax=ax, shrink=0.8)
plt.show()

# %% [markdown]
# The overlap matrix $S$ has ones on its diagonal, and says how much two AOs overlap in space. The kinetic energy $T$ and the attraction by the nuclei $V$ are
# dominated by oxygen's 1s, which is small and close to the nucleus (the colours stop at ±5 Hartree). `repulsion` has four indices: $(ij|kl)$ is the repulsion
# between the charge clouds $\chi_i\chi_j$ and $\chi_k\chi_l$; the notebook *ERI-visualisation-JK* is about it. `ao` are the values of the AOs on a grid in space
# and `weights` the weights of its points, for the integral that nobody can do on paper.
#
# ## 2. The energy is a function of a matrix
#
# The density matrix $D$ says how many electrons are in which product of AOs. `energy_and_fock` gives the energy $E(D)$ with its terms, and the gradient
# $F = \partial E/\partial D$, the *Fock matrix*, by automatic differentiation.
#
# We want the minimum of $E$ over all $D$ that hold water's ten electrons, two in each of five orbitals. Start from no electron repulsion at all, $F = T + V$, and iterate:

# %%
S = np.asarray(ints.overlap)
values, vectors = np.linalg.eigh(S)
X = (vectors / np.sqrt(values)) @ vectors.T  # S^(-1/2): orthonormal AOs


def density_of(fock):
    """Diagonalise the Fock matrix and put two electrons into each of the five lowest orbitals."""
    _, orbitals = np.linalg.eigh(X @ fock @ X)
    c = (X @ orbitals)[:, : water.n_electrons // 2]
    return 2 * c @ c.T


def iterate(mixing, cycles=30):
    """Plain SCF; `mixing` is how much of the new density enters."""
    density = density_of(np.asarray(ints.kinetic + ints.nuclear))
    energies = []
    for _ in range(cycles):
        with numerics(level):
            (energy, _), fock = energy_and_fock(density, ints, level.xc)
        energies.append(float(energy))
        density = (1 - mixing) * density + mixing * density_of(np.asarray(fock))
    return np.array(energies)


reference = pyscf_result(water, level).result.energy  # PySCF, converged tightly
plain, damped = iterate(1.0), iterate(0.5)
steps = []
result = scf(water, level, on_cycle=steps.append)  # with DIIS, from the densities of free atoms
print(
    f"plain SCF {plain[-1]:.9f} (no result), damped {damped[-1]:.9f}, DIIS {result.energy:.9f} Hartree"
)
print(f"PySCF     {reference:.9f}")

# %%
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
curves = {"plain": plain, "half of the old density": damped}
curves["DIIS, better start"] = np.array([step.energy for step in steps])
for name, energies in curves.items():
    error = np.maximum(np.abs(energies - reference), 1e-12)
    ax.semilogy(range(1, len(error) + 1), error, "o-", ms=3, label=name)
ax.axhline(1e-3 / HARTREE_TO_EV, color="grey", lw=0.8, ls=":")
ax.text(30, 1e-3 / HARTREE_TO_EV * 1.4, "1 meV", ha="right", color="grey")
ax.set(xlabel="SCF cycle", ylabel="|E - E(PySCF)| / Hartree")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# The plain loop never converges: all electrons flow at once to where the potential was low, which raises it there, and in the next cycle they flow back. Damping calms this.
# DIIS goes further: it keeps the last eight Fock matrices and mixes them so that the *commutator* $FDS - SDF$ becomes as small as possible. At the minimum the commutator is zero.
#
# The terms of the energy, cycle by cycle, in Hartree:

# %%
print("cycle      energy    kinetic  attraction   Coulomb  exchange       xc   [F,D]   gap/eV")
for s in steps:
    t = s.terms
    print(
        f"{s.cycles:5} {s.energy:11.6f} {t.kinetic:10.4f} {t.nuclear_attraction:11.4f}"
        f" {t.coulomb:9.4f} {t.exact_exchange:9.4f} {t.exchange_correlation:8.4f}"
        f" {s.commutator:7.0e} {s.gap * HARTREE_TO_EV:8.3f}"
    )
virial = -(result.energy - result.terms.kinetic) / result.terms.kinetic
print(f"virial ratio -V/T = {virial:.4f} (2 in a complete basis at the minimum geometry)")

# %% [markdown]
# ## 3. Pulling H₂ apart
#
# One molecule in many geometries is work for the engine. `pi.rks` takes a list, and since all have the same shape, one compiled program serves the whole curve.

# %%
distances = np.linspace(0.4, 5.0, 40)  # Angstrom
curve = [pi.Molecule([1, 1], [[0, 0, 0], [0, 0, r / BOHR_TO_ANGSTROM]]) for r in distances]
level = {"basis": "6-31g", "precision": "float64"}
energy = {xc: pi.rks(curve, xc=xc, **level).energy for xc in ("hf", "b3lyp")}

# %% [markdown]
# Far apart, the energy should be that of two hydrogen atoms. An atom has one electron and so is not a closed shell; PySCF computes it with its spin-polarised method.

# %%
from pyscf import dft, gto
from pyscf import scf as pyscf_scf

atom = gto.M(atom="H 0 0 0", basis="6-31g", spin=1, verbose=0)
two_atoms = {
    "hf": 2 * pyscf_scf.UHF(atom).kernel(),
    "b3lyp": 2 * dft.UKS(atom, xc="b3lyp").kernel(),
}

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for xc, colour in (("hf", "tab:orange"), ("b3lyp", "tab:blue")):
    above = (energy[xc] - two_atoms[xc]) * HARTREE_TO_EV
    ax.plot(distances, above, color=colour, label=xc)
    best = distances[np.argmin(above)]
    print(
        f"{xc:6} minimum near {best:.2f} Å, {-above.min():.2f} eV deep; at 5 Å {above[-1]:+.2f} eV"
    )
ax.axhline(0, color="grey", lw=0.8, ls=":")
ax.text(5, 0.2, "two atoms", ha="right", color="grey")
ax.set(xlabel="H-H distance / Å", ylabel="energy above two atoms / eV", ylim=(-6, 12))
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# Near the minimum both methods are sensible. Far apart both are badly wrong: two electrons are forced into *one* orbital that covers both atoms, so half of the time both are at the same atom.
# That is what "restricted" means, and why this project is for closed shells near equilibrium, not for breaking bonds.
#
# ## 4. Benzene's orbitals
#
# To PySCF, `pyscf_ipu.interop.RKS` looks like its own object, so PySCF's tools work on our orbitals. Here they evaluate orbitals in space.

# %%
from pyscf_ipu.interop import RKS

mole = mole_of(molecule_from_text("benzene"), Theory(basis="sto-3g"))
field = RKS(mole, xc="b3lyp")
field.grids.level = 0
field.kernel()
homo = mole.nelectron // 2 - 1
shown = [homo - 4, homo - 1, homo, homo + 1, homo + 2, homo + 3]
for i in shown:
    print(f"orbital {i - homo:+d} from the HOMO: {field.mo_energy[i] * HARTREE_TO_EV:8.3f} eV")

# %% [markdown]
# An *isosurface* is where an orbital has a certain value: red where it is positive, blue where it is negative. To draw it, we follow a straight ray for every pixel
# to the first point where the orbital is large enough, and shade that point by the slope there. The molecule is drawn in the same way, as balls and sticks that show through the orbital.

# %%
LEVEL = 0.05  # Bohr^-3/2
NOWHERE = 10**6  # the depth of what a ray does not meet


def rays(tilt_degrees, width_bohr, pixels, depth):
    """Points (depth, pixels, pixels, 3) along parallel rays, seen from a tilted direction; front first."""
    a = np.radians(tilt_degrees)
    right, up = np.array([1.0, 0, 0]), np.array([0, np.cos(a), np.sin(a)])
    towards = np.cross(right, up)
    side = np.linspace(-width_bohr, width_bohr, pixels)
    far = np.linspace(width_bohr, -width_bohr, depth)
    return (
        far[:, None, None, None] * towards
        + side[::-1, None, None] * up
        + side[None, :, None] * right
    )


def lit(value, level):
    """Brightness (pixels, pixels) of the surface value = level, and its depth; NaN where there is none."""
    inside = value > level
    first = inside.argmax(axis=0)
    rows, columns = np.indices(first.shape)
    slope = np.stack([g[first, rows, columns] for g in np.gradient(value)])
    light = np.array([-0.8, -0.5, -0.4])  # from the front, above and left
    shade = -(light[:, None, None] * slope).sum(0) / (np.linalg.norm(slope, axis=0) + 1e-12)
    hit = inside.any(axis=0)
    return np.where(hit, 0.35 + 0.65 * np.clip(shade, 0, 1), 0), np.where(hit, first, NOWHERE)


def balls_and_sticks(points, longest_bond_bohr=3.0):
    """How far inside the molecule points lie (Bohr), and the grey of the atom next to each."""
    inside, nearest = np.full((2, *points.shape[:-1]), -np.inf)
    grey = np.zeros_like(inside)
    atoms = mole.atom_coords()
    for i, atom in enumerate(atoms):
        carbon = mole.atom_charge(i) == 6
        closeness = -np.linalg.norm(points - atom, axis=-1)
        grey = np.where(closeness > nearest, 0.4 if carbon else 0.95, grey)
        nearest = np.maximum(nearest, closeness)
        inside = np.maximum(inside, closeness + (0.6 if carbon else 0.42))
        for bond in atoms[:i] - atom:
            if (square := bond @ bond) < longest_bond_bohr**2:
                along = np.clip((points - atom) @ bond / square, 0, 1)[..., None]
                stick = 0.22 - np.linalg.norm(points - atom - along * bond, axis=-1)
                inside = np.maximum(inside, stick)
    return inside, grey


def picture(orbital, molecule, grey):
    """RGB (pixels, pixels, 3) of an orbital's lobes, and of the molecule (all depth, pixels, pixels)."""
    light, front = lit(molecule, 0)
    at = np.minimum(front, len(grey) - 1)[None]
    light = light * np.take_along_axis(grey, at, axis=0)[0]
    layers = [(light, front, (1, 1, 1), 1.0)]
    layers += [(*lit(orbital, LEVEL), (0.85, 0.2, 0.15), 0.75)]
    layers += [(*lit(-orbital, LEVEL), (0.15, 0.35, 0.8), 0.75)]
    image = np.ones((*light.shape, 3))
    for order in np.argsort([-front for _, front, *_ in layers], axis=0):  # the farthest first
        for k, (light, front, colour, opacity) in enumerate(layers):
            here = (order == k) & (front < NOWHERE)
            image[here] += opacity * (light[here][:, None] * colour - image[here])
    return image


points = rays(tilt_degrees=55, width_bohr=6.2, pixels=120, depth=80)
aos = mole.eval_gto("GTOval", points.reshape(-1, 3))
molecule = balls_and_sticks(points)
fig, axes = plt.subplots(2, 3, figsize=(7.5, 5), dpi=72, layout="constrained")
for ax, i in zip(axes.flat, shown, strict=True):
    ax.imshow(picture((aos @ field.mo_coeff[:, i]).reshape(points.shape[:3]), *molecule))
    label = "HOMO" if i <= homo else "LUMO"
    offset = i - homo if i <= homo else i - homo - 1
    ax.set_title(f"{label}{offset:+d}" if offset else label, fontsize=10)
    ax.axis("off")
plt.show()

# %% [markdown]
# Step through all orbitals, from the lowest of the valence shell to the sixth empty one: scroll the strip to the right, or click on it and press the arrow keys.
# The diagram beside each says where it lies; orange levels hold two electrons.

# %%
import base64
import io

from IPython.display import HTML, display

levels = field.mo_energy * HARTREE_TO_EV
fig, (left, right) = plt.subplots(
    1, 2, figsize=(3.6, 2.4), dpi=62, width_ratios=(3, 1), layout="constrained"
)
right.hlines(levels[6 : homo + 1], 0, 1, color="tab:orange", lw=1)  # below are the carbons' 1s
right.hlines(levels[homo + 1 : homo + 7], 0, 1, color="grey", lw=1)
(marker,) = right.plot([-0.15, 1.15], [0, 0], color="black", lw=3)
right.set(ylabel="energy / eV", xticks=[])
right.spines["bottom"].set_visible(False)
left.axis("off")
image = left.imshow(np.ones((*points.shape[1:3], 3)))


def step(i):
    """An orbital as a picture in HTML; JPEG, because it becomes a part of the notebook."""
    image.set_data(picture((aos @ field.mo_coeff[:, i]).reshape(points.shape[:3]), *molecule))
    near = f"HOMO{i - homo:+d}" if i <= homo else f"LUMO{i - homo - 1:+d}"
    name = f"{i + 1}: {near.removesuffix('+0')}, {levels[i]:.1f} eV"
    left.set_title(name, fontsize=10)
    marker.set_ydata([levels[i], levels[i]])
    data = io.BytesIO()
    fig.savefig(data, format="jpeg", pil_kwargs={"quality": 50})
    source = f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"
    style = "flex: none; max-width: none; scroll-snap-align: start"
    return f'<img alt="{name}" src="{source}" style="{style}">'


strip = "".join(step(i) for i in range(6, homo + 7))
plt.close(fig)
style = "display: flex; overflow-x: auto; scroll-snap-type: x mandatory; max-width: 670px"
display(HTML(f'<div tabindex="0" style="{style}">{strip}</div>'))

# %% [markdown]
# Choose one by its number. Numbers begin at 0: 0 to 5 are made of the carbons' 1s, `homo` is 20, and 35 is the last. With 5 there is a ball around each carbon.
# Electrons so close to a nucleus hardly notice the other atoms: the energies of the six differ by less than 0.1 eV, and they have no part in the bonds. Choose another number, and run the next two cells again.

# %%
mo_index = 5

# %% [markdown]
# Turn it with the mouse (the viewer py3Dmol loads its script from the network; without a network you see only the picture).

# %%
import py3Dmol

chosen = field.mo_coeff[:, mo_index]
print(
    f"orbital {mo_index} of {len(levels)}: {levels[mo_index]:.1f} eV, {field.mo_occ[mo_index]:.0f} electrons"
)


def cube_text(orbital_coefficients, spacing_bohr=0.4):
    """A Gaussian cube file with few digits: it becomes a part of the notebook."""
    half = np.array([6.6, 6.6, 3.3])
    axes = [np.arange(-h, h + 1e-9, spacing_bohr) for h in half]
    where = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    value = mole.eval_gto("GTOval", where) @ orbital_coefficients
    lines = ["", "", f"{mole.natm} {-half[0]} {-half[1]} {-half[2]}"]
    lines += [
        f"{len(a)} " + " ".join(f"{spacing_bohr * (k == d)}" for k in range(3))
        for d, a in enumerate(axes)
    ]
    lines += [
        f"{z} {z} {x:.3f} {y:.3f} {u:.3f}"
        for z, (x, y, u) in zip(mole.atom_charges(), mole.atom_coords(), strict=True)
    ]
    return "\n".join([*lines, " ".join(f"{v:g}" for v in value.round(2))])


xyz = f"{mole.natm}\n\n" + mole.tostring("raw")
view = py3Dmol.view(width=420, height=320)
view.addModel(xyz, "xyz")
view.setStyle({"stick": {"radius": 0.12}, "sphere": {"scale": 0.2}})
cube = cube_text(chosen)
for sign, colour in ((1, "red"), (-1, "blue")):
    view.addVolumetricData(cube, "cube", {"isoval": sign * LEVEL, "color": colour, "opacity": 0.8})
view.rotate(-55, "x")
view.zoomTo()
display(HTML(view._make_html()))
fig, ax = plt.subplots(figsize=(3.2, 3.2))
ax.imshow(picture((aos @ chosen).reshape(points.shape[:3]), *molecule))
ax.set_title(f"mo_index = {mo_index}", fontsize=10)
ax.axis("off")
plt.show()

# %% [markdown]
# The six in the first picture are made of the carbons' p orbitals perpendicular to the ring. All of them vanish in the plane of the ring. Apart from that, the lowest has no nodal plane,
# HOMO−1 and HOMO have one each and (up to the grid) the same energy, LUMO and LUMO+1 have two, and the highest has three. This is Hückel's picture of benzene, and it came out of a minimisation.
#
# ## 5. Forces, and a geometry that finds itself
#
# The gradient with respect to the *nuclei* gives the forces, and `pi.optimize` follows them downhill. We start from a methanol drawn by hand, with bonds that are too long and angles that are not tetrahedral.

# %%
drawn = molecule_from_text(
    "C 0 0 0; O 0 0 1.6; H 1.1 0 -0.3; H -0.6 0.9 -0.3; H -0.6 -0.9 -0.3; H 0.9 0 2.0"
)
walk = pi.optimize(drawn, basis="sto-3g", xc="b3lyp")
print(walk.message)


def bond(positions, i, j):
    return np.linalg.norm(positions[i] - positions[j]) * BOHR_TO_ANGSTROM


for name, frame in (("start", walk.trajectory[0]), ("end", walk.trajectory[-1])):
    print(
        f"{name:5} C-O {bond(frame, 0, 1):.3f} Å, O-H {bond(frame, 1, 5):.3f} Å, C-H {bond(frame, 0, 2):.3f} Å"
    )

# %%
from IPython.display import Image
from matplotlib.animation import FuncAnimation, PillowWriter
from scipy.spatial.transform import Rotation

COLOURS = {"H": "white", "C": "dimgrey", "O": "red"}
SIZES = {"H": 200, "C": 500, "O": 460}


# Along y as the molecule was drawn, two hydrogens would hide one another: turn it about z, then x.
VIEW = Rotation.from_euler("zx", [35, 20], degrees=True).as_matrix()


def draw(ax, positions):
    """Balls and sticks, turned by VIEW and then seen along y."""
    where = (positions - positions.mean(0)) @ VIEW.T * BOHR_TO_ANGSTROM
    x, depth, z = where.T
    for i in range(len(where)):
        for j in range(i):
            if bond(positions, i, j) < (
                1.9 if "H" not in (drawn.symbols[i] + drawn.symbols[j]) else 1.35
            ):
                ax.plot(x[[i, j]], z[[i, j]], color="grey", lw=3, zorder=0)
    for i in np.argsort(-depth):
        ax.scatter(
            x[i],
            z[i],
            s=SIZES[drawn.symbols[i]],
            c=COLOURS[drawn.symbols[i]],
            edgecolors="black",
            zorder=2 - depth[i] / 10,
        )
    ax.set(xlim=(-2, 2), ylim=(-2, 2), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


above = (walk.energies - walk.energies[-1]) * HARTREE_TO_EV
fig, (left, right) = plt.subplots(1, 2, figsize=(5.2, 2.4), dpi=70, layout="constrained")


def frame(k):
    left.clear()
    draw(left, walk.trajectory[k])
    right.clear()
    right.semilogy(np.maximum(above[: k + 1], 1e-6), "o-", ms=3)
    right.set(
        xlim=(0, len(above)), ylim=(1e-5, 10), xlabel="step", ylabel="energy above the end / eV"
    )


gif = Path(tempfile.mkdtemp()) / "methanol.gif"
FuncAnimation(fig, frame, frames=len(above)).save(gif, writer=PillowWriter(fps=4))
plt.close(fig)
display(Image(data=gif.read_bytes(), format="gif"))

# %%
fig, axes = plt.subplots(1, 4, figsize=(8, 2), layout="constrained")
for ax, k in zip(
    axes, np.unique(np.linspace(0, len(above) ** 0.5 - 1e-9, 4) ** 2 // 1).astype(int), strict=True
):
    draw(ax, walk.trajectory[k])
    ax.set_title(f"step {k}: {above[k]:+.4f} eV", fontsize=9)
plt.show()

# %% [markdown]
# ## Where to go from here
#
# * In a terminal, `nanodft benzene --compare` prints the table of section 2, compared with PySCF, for any molecule.
# * [`docs/nanodft.md`](../docs/nanodft.md) is a guide to that file.
# * *DFT-dataset-generation* does this for many molecules at once; *float32-DFT* asks how many digits it takes.
