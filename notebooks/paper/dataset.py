"""What is in the dataset: sizes, gaps, how gaps spread within a molecule, other geometries."""

import json

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from paper import conformers
from paper.drawing import BLUE, COLOURS, GREY, RED, Job, canvas, keep, legend, plain
from pyscf_ipu import Molecule, Settings, rks
from pyscf_ipu.base.units import HARTREE_TO_EV

QM9 = conformers.BENCHMARKS / "data" / "qm9_small.json"
LEVEL = Settings.preset("qm1b")
SYMBOL_COLOURS = {1: "#dddddd", 6: "#444444", 7: "#3050f8", 8: "#ff0d0d", 9: "#60b030"}


def histograms(job: Job) -> None:
    """Atoms, heavy atoms, hydrogens, AOs, conformers per molecule and gap."""
    c = conformers.rows(job).columns
    _, per_molecule = np.unique(c["smiles"].astype(str), return_counts=True)
    columns = {
        "atoms": c["atoms"],
        "heavy atoms": c["heavy"],
        "hydrogens": c["hydrogens"],
        "atomic orbitals": c["aos"],
        "conformers per molecule": per_molecule.astype(float),
        "gap (eV)": c["gap"],
    }
    figure, rows = canvas(3, 2, width=3.1, height=2.4), []
    for axes, (name, values) in zip(figure.subplots(2, 3).flat, columns.items(), strict=True):
        whole = name != "gap (eV)"
        low, high = values.min(), values.max()
        edges = np.arange(low - 0.5, high + 1) if whole else np.linspace(low, high, 40)
        heights, edges = np.histogram(values, edges)
        axes.stairs(100 * heights / len(values), edges, fill=True, color=BLUE)
        rows += [(name, a, n) for a, n in zip(edges[:-1] + 0.5 * whole, heights, strict=True)]
        per = "molecules (%)" if name.startswith("conformers") else "rows (%)"
        if low == high:
            axes.set_xlim(low - 3, high + 3)
        plain(axes, name, per).xaxis.set_major_locator(MaxNLocator(5, integer=whole))
    figure.suptitle(f"{len(c['gap'])} conformers of {len(per_molecule)} molecules", fontsize=10)
    keep(job, "dataset_histograms", figure, ("quantity", "value_or_left_edge", "count"), rows)


def gap_spread(job: Job) -> None:
    """Standard deviation of the gap within a molecule, with three examples drawn."""
    c = conformers.rows(job).columns
    names = c["smiles"].astype(str)
    least = 0.8 * (job.each or conformers.CONFORMERS[job.quick])
    spread = {
        name: 1e3 * float(np.std(c["gap"][names == name]))
        for name in np.unique(names)
        if (names == name).sum() >= least
    }
    order = sorted(spread, key=lambda name: spread[name])
    chosen = {"narrow": order[len(order) // 20], "typical": order[len(order) // 2]}
    chosen["wide"] = order[-1 - len(order) // 50]
    figure = canvas(4, 2, width=2.7, height=2.3)
    grid = figure.add_gridspec(2, 4)
    whole = figure.add_subplot(grid[:, 0])
    whole.hist(list(spread.values()), 25, color=BLUE)
    plain(whole, "standard deviation of the gap\nwithin a molecule (meV)", "molecules")
    for k, (kind, name) in enumerate(chosen.items(), start=1):
        inside = names == name
        whole.axvline(spread[name], color=COLOURS[k], lw=1.5, label=kind)
        picture = figure.add_subplot(grid[0, k])
        first = np.flatnonzero(inside)[0]
        _draw(picture, c["numbers"][first], c["positions"][first])
        picture.set_title(f"{kind}: {name}", fontsize=8, color=COLOURS[k])
        axes = figure.add_subplot(grid[1, k])
        values = c["gap"][inside]
        middle, half = float(values.mean()), max(0.6, 0.6 * float(np.ptp(values)))
        axes.hist(values, np.linspace(middle - half, middle + half, 25).tolist(), color=COLOURS[k])
        plain(axes, "gap (eV)", "conformers", f"{spread[name]:.0f} meV, {inside.sum()} conformers")
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    legend(whole)
    keep(job, "gap_spread", figure, ("smiles", "std_of_gap_mev"), [(n, spread[n]) for n in order])


def geometries(job: Job) -> None:
    """Gaps of QM9's molecules, with its geometries and with RDKit's, and of GDB's, at one level."""
    records = [r for r in json.loads(QM9.read_text()) if _heavy(r["symbols"]) >= 4]
    records = records[: 16 if job.quick else None]
    theirs = [
        Molecule.from_symbols(r["symbols"], np.array(r["pos_angstrom"]))  # in Angstrom
        for r in records
    ]
    embedded = [Molecule.from_smiles(r["smiles"], seed=0) for r in records]
    both = rks([*theirs, *embedded], xc=LEVEL.xc, basis=LEVEL.basis, grid_level=LEVEL.grid_level)
    gaps = HARTREE_TO_EV * np.asarray(both.gap)
    groups = {
        "QM9: its geometries": gaps[: len(records)],
        "QM9: RDKit's geometries": gaps[len(records) :],
        "GDB-11: RDKit's geometries": conformers.rows(job).columns["gap"],
        "QM9: published, B3LYP/6-31G(2df,p)": HARTREE_TO_EV
        * np.array([r["lumo_hartree"] - r["homo_hartree"] for r in records]),
    }
    figure = canvas(2, 1, width=4.4)
    left, right = figure.subplots(1, 2)
    everything = np.concatenate(list(groups.values()))
    edges = np.linspace(everything.min(), everything.max(), 13 if job.quick else 25)
    for i, (name, values) in enumerate(groups.items()):
        heights, _ = np.histogram(values, edges, density=True)
        label = f"{name} ({len(values)})"
        left.stairs(heights, edges, color=COLOURS[i], lw=1.5, label=label)
    plain(left, "gap (eV)", "density (1/eV)", "B3LYP (VWN5)/STO-3G, grid level 0")
    left.set_ylim(top=1.5 * left.get_ylim()[1])
    legend(left, loc="upper right", fontsize=6)
    at_minimum, by_rdkit, _, published = groups.values()
    right.plot(at_minimum, by_rdkit, ".", color=BLUE, label="RDKit's geometry, same level")
    right.plot(at_minimum, published, ".", color=RED, label="same geometry, published level")
    ends = [min(at_minimum.min(), published.min()), max(at_minimum.max(), published.max())]
    right.plot(ends, ends, color=GREY, lw=1)
    plain(right, "gap at QM9's geometry, STO-3G (eV)", "gap (eV)")
    legend(right)
    rows = [
        (r["smiles"], a, b, p)
        for r, a, b, p in zip(records, at_minimum, by_rdkit, published, strict=True)
    ]
    header = ("smiles", "gap_qm9_geometry_ev", "gap_rdkit_geometry_ev", "gap_published_ev")
    keep(job, "geometries", figure, header, rows)


def _heavy(symbols: list[str]) -> int:
    return sum(symbol != "H" for symbol in symbols)


def _draw(axes: Axes, numbers: np.ndarray, positions: np.ndarray) -> None:
    """A ball-and-stick picture: the plane in which the atoms lie farthest apart."""
    centred = positions - positions.mean(axis=0)
    axis = np.linalg.svd(centred, full_matrices=False)[2]
    flat = centred @ axis.T
    order = np.argsort(flat[:, 2])
    reach = np.where(numbers > 1, 1.5, 0.6)
    for i in range(len(numbers)):
        for j in range(i):
            if np.linalg.norm(centred[i] - centred[j]) < 1.15 * (reach[i] + reach[j]):
                axes.plot(*flat[[i, j], :2].T, color=GREY, lw=1.5, zorder=1)
    colours = [SYMBOL_COLOURS.get(int(numbers[i]), "#c8a2c8") for i in order]
    sizes = np.where(numbers[order] > 1, 70, 25)
    axes.scatter(*flat[order, :2].T, s=sizes, c=colours, edgecolors="black", lw=0.5, zorder=2)
    axes.set_aspect("equal")
    axes.margins(0.15)
    axes.axis("off")
