"""QM1B's own level of theory beside the figures that PySCF-IPU printed for two of its molecules.

    python benchmarks/qm1b_level.py

Its notebooks (graphcore-research/pyscf-ipu, notebooks on data generation) show gaps and frontier
orbitals of so many conformers of two molecules.  Conformers are other ones here, so ranges are
compared, not rows: ours has to overlap each printed one.  For the second molecule the printed rows
are few, and its conformers differ by half an eV.  All numbers in eV.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pyscf_ipu.units import HARTREE_TO_EV
from qm1b import store
from qm1b.commands.generate import Generate, run_settings
from qm1b.generate import Run, generate


@dataclass(frozen=True)
class Printed:
    """What PySCF-IPU's notebooks print of a molecule: ranges in eV."""

    smiles: str
    n_ao: int
    gap: tuple[float, float]
    homo: tuple[float, float]
    lumo: tuple[float, float] | None


CONFORMERS = 23
PRINTED = (
    Printed("FC(F)(C#N)C(=O)C#N", 45, (4.55, 5.45), (-6.05, -5.44), None),
    Printed("On1cnn(NC=O)c1=N", 55, (4.91, 5.04), (-2.44, -2.28), (2.52, 2.76)),
)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "two.smi", Path(folder) / "data"
        source.write_text("".join(f"{p.smiles}\n" for p in PRINTED))
        settings = run_settings(Generate(source=source, preset="qm1b", conformers=CONFORMERS))
        generate(Run(source, out, settings))
        (path,) = store.shards(out)
        shard = store.read_shard(path)
    inside = [compared(p, shard, line) for line, p in enumerate(PRINTED, 1)]
    return 0 if all(inside) else 1


def compared(printed: Printed, shard: store.Shard, line: int) -> bool:
    """Print ours beside theirs; whether the ranges overlap."""
    rows = (shard["line"] == line) & shard["converged"]
    homo, lumo = (shard[name][rows] * HARTREE_TO_EV for name in ("homo", "lumo"))
    (n_ao,) = set(shard["n_ao"][rows].tolist())
    print(f"{printed.smiles}: {rows.sum()} conformers, N = {n_ao} (printed {printed.n_ao})")
    inside = n_ao == printed.n_ao
    for name, ours, range_ in (
        ("gap", lumo - homo, printed.gap),
        ("homo", homo, printed.homo),
        ("lumo", lumo, printed.lumo),
    ):
        theirs = "not printed" if range_ is None else f"{range_[0]:.2f} to {range_[1]:.2f}"
        middle = float(np.median(ours))
        fits = range_ is None or (ours.min() <= range_[1] and range_[0] <= ours.max())
        inside &= fits
        print(
            f"  {name:5} ours {ours.min():6.2f} to {ours.max():6.2f}, median {middle:6.2f}   "
            f"PySCF-IPU {theirs:16} {'' if fits else 'APART'}"
        )
    return inside


if __name__ == "__main__":
    sys.exit(main())
