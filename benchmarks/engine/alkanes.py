"""Time per Fock matrix against size: alkanes C4 to C20, B3LYP/6-31G*, grid level 1, `jk="ri"`.

A Fock matrix is J, K and XC of one density; the columns of the density, from which K is made,
count with K.  Beside it stand the eigenproblem of a cycle, and what is computed once for a
conformer.  Each stage is a program of its own (see `stages`); pin it to one core: taskset -c 0.
The exponent is that of the number of AOs, between neighbours and over all sizes.  Writes PNG, PDF
and CSV beside the JSON.
"""

import math
import sys
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from matplotlib.figure import Figure

from benchmarks import harness
from benchmarks.engine.sides import peak_memory
from benchmarks.engine.stages import Stages
from paper.drawing import BLUE, GREEN, GREY, ORANGE, RED, Job, canvas, keep, plain
from pyscf_ipu import Molecule, Settings
from pyscf_ipu.grid.xc_matrix import PORTABLE, exchange_correlation

CARBONS = (4, 6, 8, 12, 16, 20)
BOUND = 3.0
FOCK = {"J and K": ("columns of the density", "J and K"), "XC": ("XC",)}
ONCE = ("pairs in float64", "three-index integrals", "metric", "factor and solution")


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--carbons", type=int, nargs="*", default=CARBONS)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for n in args.carbons:
        rows.append(measured(n, args.rounds))
        harness.table(rows[-1:])
    for one, other in pairwise(rows):
        other["exponent"] = exponent(one, other)
    overall = exponent(rows[0], rows[-1])
    harness.table(rows)
    print(f"over all sizes: N^{overall:.2f}")
    columns = list(rows[-1])
    values = [[row.get(name, math.nan) for name in columns] for row in rows]
    keep(Job(args.out.parent, quick=False), args.out.stem, drawn(rows, overall), columns, values)
    missed = [f"N^{overall:.2f} over all sizes"] if overall > BOUND else []
    return harness.finish(args.out, {"rows": rows, "exponent": overall}, missed)


def exponent(one: dict[str, Any], other: dict[str, Any]) -> float:
    """That of the number of AOs with which the time of a Fock matrix grows."""
    return math.log(other["fock_ms"] / one["fock_ms"]) / math.log(other["aos"] / one["aos"])


def measured(carbons: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of one alkane."""
    settings = Settings(xc="b3lyp", basis="6-31g*", grid_level=1, jk="ri")
    with settings.numerics.scope():
        timed = Stages(Molecule.from_smiles("C" * carbons, seed=0), settings, rounds)
        fit, grid, density = timed.hamiltonian()
        products, _ = fit
        timed.run("XC", lambda g, d: exchange_correlation(timed.xc, g, d, PORTABLE), grid, density)
        timed.repulsion(fit, density)
        some = jnp.eye(len(density), dtype=density.dtype) + 0.1 * density @ density
        timed.run("eigh", jnp.linalg.eigh, some)
    jax.clear_caches()
    ms = timed.ms
    parts = {name: sum(ms[one] for one in stages) for name, stages in FOCK.items()}
    return {
        "carbons": carbons,
        "aos": timed.shape.n_ao,
        "auxiliary": len(products.b),
        "pairs_percent": 100 * float(jnp.mean(products.present)),
        "points": timed.shape.n_grid,
        "fock_ms": sum(parts.values()),
        "jk_ms": parts["J and K"],
        "xc_ms": parts["XC"],
        "eigh_ms": ms["eigh"],
        "fit_ms": sum(ms[name] for name in ONCE),
        "grid_ms": ms["grid and AO values"],
        "peak_mib": peak_memory(),
    }


def drawn(rows: list[dict[str, Any]], overall: float) -> Figure:
    """Times over the number of AOs, on logarithmic axes, with N^3 for comparison."""
    figure = canvas(width=4.6, height=3.4)
    axes = plain(figure.subplots(), "atomic orbitals N", "time on one core, ms")
    aos = [row["aos"] for row in rows]
    lines = (
        ("fock_ms", f"Fock matrix (N$^{{{overall:.1f}}}$)", BLUE),
        ("jk_ms", "J and K", RED),
        ("xc_ms", "XC", GREEN),
        ("fit_ms", "fit, once", ORANGE),
    )
    for key, label, colour in lines:
        width = 2.0 if key == "fock_ms" else 1.0
        axes.loglog(aos, [row[key] for row in rows], "o-", c=colour, lw=width, ms=4, label=label)
    last = rows[-1]["fock_ms"]
    axes.loglog(aos, [last * (n / aos[-1]) ** 3 for n in aos], "--", c=GREY, lw=1, label="N$^3$")
    for row in rows:
        axes.annotate(
            f"C{row['carbons']}",
            (row["aos"], row["fock_ms"]),
            (0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=7,
        )
    axes.legend(frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    sys.exit(main())
