"""What float32 does to single operations, and how many bytes the integrals take."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from pyscf import scf
from pyscf.dft import libxc

from paper.drawing import BLUE, COLOURS, GREEN, RED, Job, canvas, keep, legend, plain
from pyscf_ipu import Molecule, Settings, rks_core
from pyscf_ipu.interop import integrals
from pyscf_ipu.ipu import BOW, machine_of, memory_of
from pyscf_ipu.shapes.shape import Shape, shape_of
from pyscf_ipu.xc.registry import functional

FLOAT = 4
PUBLISHED_MOST_AOS = 70
TILE_KIB = 624


def functional_errors(job: Job) -> None:
    """Relative errors of the energy density and its derivatives over the density."""
    rng = np.random.default_rng(0)
    n = 4_000 if job.quick else 40_000
    rho = 10 ** rng.uniform(-8, 3, n)
    reduced = 10 ** rng.uniform(-2, 1, n)  # s, the reduced gradient, of molecules
    sigma = (reduced * 2 * (3 * np.pi**2) ** (1 / 3) * rho ** (4 / 3)) ** 2
    rho, sigma = (values.astype(np.float32) for values in (rho, sigma))
    xc = functional("b3lyp5")
    found = xc.energy_and_potential(jnp.asarray(rho), jnp.asarray(sigma))
    ours = [np.asarray(values, np.float64) for values in found]
    wide = np.float64(rho), np.float64(sigma)
    gradient = np.sqrt(wide[1])
    zero = np.zeros_like(gradient)
    exc, derivatives = libxc.eval_xc(xc.pyscf_name, np.stack([wide[0], gradient, zero, zero]))[:2]
    theirs = [exc * wide[0], derivatives[0], derivatives[1]]
    names = ("energy density", "v_rho", "v_sigma")
    figure = canvas(3, 1, width=3.5)
    rows = []
    for axes, name, a, b in zip(figure.subplots(1, 3), names, ours, theirs, strict=True):
        error = np.abs(a - b) / np.maximum(np.abs(b), 1e-30)
        axes.loglog(rho, np.maximum(error, 1e-9), ".", ms=1.5, color=BLUE, alpha=0.5)
        axes.axhline(np.finfo(np.float32).eps, color=RED, lw=1, label="float32's epsilon")
        edges = 10.0 ** np.arange(-8, 4)
        for low, high in pairwise(edges):
            inside = (rho >= low) & (rho < high)
            median, worst = np.median(error[inside]), np.percentile(error[inside], 99)
            rows.append((name, low, high, median, worst))
            label = "median" if low == edges[0] else None
            axes.plot([low, high], [median, median], color=GREEN, lw=2, label=label)
        plain(axes, "density (electrons/Bohr³)", f"relative error of {name}")
        axes.set_ylim(1e-9, 1e-2)
        legend(axes, loc="upper left")
    header = ("quantity", "density_from", "density_to", "median_relative", "percentile_99_relative")
    keep(job, "functional_errors", figure, header, rows)


def coulomb_and_exchange(job: Job) -> None:
    """Errors of J and K in float32, for densities of PySCF's guess, over their size."""
    smiles = ["CO", "C=CC=O"] if job.quick else ["CO", "C=CC=O", "c1ccccc1", "CC(=O)NC", "C1CCOC1"]
    figure = canvas(2, 1, width=3.8)
    panels, rows = figure.subplots(1, 2), []
    for i, text in enumerate(smiles):
        mol = Molecule.from_smiles(text, seed=0)
        level = Settings(precision="float32", grid_level=0)
        mole = level.pyscf_mole(mol.numbers, mol.positions)
        density = scf.hf.init_guess_by_minao(mole)
        theirs = {n: np.asarray(m) for n, m in zip("JK", scf.hf.get_jk(mole, density), strict=True)}
        repulsion = integrals(mol, level)(jnp.asarray(mol.positions, jnp.float32)).repulsion
        narrow = jnp.asarray(density, jnp.float32)
        how = jax.lax.Precision.HIGHEST
        ours = {
            "J": jnp.einsum("ijkl,kl->ij", repulsion, narrow, precision=how),
            "K": jnp.einsum("ikjl,kl->ij", repulsion, narrow, precision=how),
        }
        for axes, name in zip(panels, "JK", strict=True):
            value = np.abs(theirs[name]).ravel()
            error = np.abs(np.asarray(ours[name]) - theirs[name]).ravel()
            label = f"{text} ({mole.nao} AOs)"
            axes.loglog(value, np.maximum(error, 1e-10), ".", ms=2, color=COLOURS[i], label=label)
            rows.append((text, mole.nao, name, error.max(), np.sqrt(np.mean(error**2))))
    for axes, name in zip(panels, "JK", strict=True):
        line = np.array([1e-4, 1e2])
        axes.loglog(line, 1.2e-7 * line, color="black", lw=1, label="float32's epsilon")
        axes.set_xlim(1e-6, 1e2)
        axes.set_ylim(top=1e-3)
        plain(axes, f"|{name}| (Hartree)", f"|error of {name}| (Hartree)")
        legend(axes, loc="upper left")
    header = ("smiles", "aos", "matrix", "largest_error_hartree", "rms_error_hartree")
    keep(job, "coulomb_exchange_errors", figure, header, rows)


def bytes_of_integrals(job: Job) -> None:
    """Bytes of the repulsion integrals in each layout, for alkanes in STO-3G."""
    lengths = range(1, 13)
    shapes = {n: _alkane(n) for n in lengths}
    figure = canvas(1, 1, width=5.2, height=3.6)
    axes, rows = figure.subplots(), []
    layouts = {
        "dense, N⁴": lambda s: FLOAT * s.n_ao**4,
        "eightfold, N⁴/8": lambda s: FLOAT * _pairs(s) * (_pairs(s) + 1) / 2,
        "G on a CPU (J and K in one)": lambda s: FLOAT * s.n_pairs**2,
        "G on an IPU, half of it": lambda s: FLOAT * s.n_pairs * (s.n_pairs + 1) / 2,
        "G, per tile of one Bow": lambda s: FLOAT * s.n_pairs * (s.n_pairs + 1) / 2 / 1471,
    }
    for i, (name, size) in enumerate(layouts.items()):
        aos = [shapes[n].n_ao for n in lengths]
        values = [size(shapes[n]) for n in lengths]
        line = {"lw": 4, "alpha": 0.5} if name.startswith("eightfold") else {"lw": 1.5}
        axes.semilogy(aos, values, "o-", ms=3, color=COLOURS[i], label=name, **line)
        for n, a, value in zip(lengths, aos, values, strict=True):
            rows.append((name, f"C{n}H{2 * n + 2}", a, value))
    for smiles in ("C", "CCC") if job.quick else ("C", "CCC", "CCCCC", "CCCCCCC"):
        mol = Molecule.from_smiles(smiles, seed=0)
        core, args = rks_core(
            mol, Settings(xc="b3lyp5", grid_level=0), lambda s: machine_of(BOW, 1, s)
        )
        total = memory_of(core, BOW, 1, *args).max_tile_bytes
        aos = shape_of(mol.numbers, "sto-3g", False, 0).n_ao
        label = "fullest tile, everything (simulated)" if smiles == "C" else None
        axes.semilogy(aos, total, "s", ms=5, color="black", label=label)
        rows.append(("fullest tile, everything", smiles, aos, total))
    axes.axhline(1024 * TILE_KIB, color=RED, lw=1, label="memory of a tile, 624 KiB")
    axes.axvline(PUBLISHED_MOST_AOS, color=RED, ls=":", lw=1, label="PySCF-IPU's limit, 70 AOs")
    plain(axes, "atomic orbitals", "bytes (float32)", "alkanes, STO-3G")
    legend(axes, ncols=2, fontsize=6, loc="upper left")
    axes.set_ylim(1, 1e12)
    keep(job, "integral_bytes", figure, ("layout", "molecule", "aos", "bytes"), rows)


def _alkane(n: int) -> Shape:
    return shape_of(np.array([6] * n + [1] * (2 * n + 2)), "sto-3g", False, 0, pad=False)


def _pairs(shape: Shape) -> int:
    return shape.n_ao * (shape.n_ao + 1) // 2
