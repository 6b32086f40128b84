"""What the scripts share: the rows of a run, read without qm1b, beside what another program read.

The scripts run in virtual environments of the other programs. So they need only h5py and NumPy
besides, and convert units with constants of their own (CODATA 2018).
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from benchmarks import harness

ANGSTROM, EV = 0.529177210903, 27.211386245988
"""Of a Bohr, and of a Hartree."""

BOUND = 2e-6
"""Of the largest difference, relative to the larger of 1 and the value: float32, and readers whose
own constants have six digits."""

SYMBOLS = dict(enumerate("X H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar".split()))

Values = Mapping[str, Any]
"""Arrays and numbers of a conformer by name: numbers, positions (Angstrom), energy, that of its
free atoms, or their difference (energy, atoms, formation; eV), forces (eV/Angstrom), dipole
(e*Angstrom), charges (e) and total_charge."""


def options(doc: str | None, file: str) -> argparse.ArgumentParser:
    """The arguments of every script: the run, and what was exported from it."""
    made = harness.parser(doc, file)
    made.add_argument("folder", type=Path, help="folder of qm1b generate")
    made.add_argument("exported", type=Path, help="what qm1b export wrote")
    return made


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The converged rows of a run in eV and Angstrom, from its shards."""
    manifest = json.loads((folder / "manifest.json").read_text())
    free = manifest.get("free_atom_energies_hartree") or {}
    for path in sorted(folder.glob("shard-*.h5")):
        with h5py.File(path) as file:
            group: Any = file["rows"]
            shard = {name: data[()] for name, data in group.items()}
        for r in np.flatnonzero(shard["converged"]):
            a, b = shard["atom_offset"][r : r + 2]
            numbers = shard["numbers"][a:b]
            found = {
                "numbers": numbers,
                "positions": shard["positions"][a:b].astype(np.float64) * ANGSTROM,
                "energy": shard["energy"][r] * EV,
                "dipole": shard["dipole"][r] * ANGSTROM,
                "charges": shard["mulliken_charges"][a:b],
                "total_charge": shard["charge"][r],
            }
            if "forces" in shard:
                found["forces"] = shard["forces"][a:b] * EV / ANGSTROM
            if free:
                found["atoms"] = sum(free[SYMBOLS[int(z)]] for z in numbers) * EV
                found["formation"] = found["energy"] - found["atoms"]
            yield found


def report(given: argparse.Namespace, name: str, read: Iterable[Values]) -> int:
    """Compare, and keep the figures under a name beside those of earlier readers; the exit code."""
    figures, missed = compare(name, given.folder, read)
    return harness.finish(given.out, harness.earlier(given.out) | {name: figures}, missed)


def compare(title: str, folder: Path, read: Iterable[Values]) -> tuple[dict[str, Any], list[str]]:
    """Compare what a program read with the rows of the run, in their order; prints a table.

    Returns:
        The largest difference of every quantity that was read, and the bounds that were missed.
    """
    largest: dict[str, float] = {}
    expected, found = list(rows(folder)), list(read)
    for here, there in zip(expected, found, strict=False):
        for name, value in there.items():
            one, other = np.asarray(here[name], float), np.asarray(value, float)
            off = np.inf
            if one.size == other.size:
                differences = np.abs(one.ravel() - other.ravel()) / np.maximum(
                    1, np.abs(one.ravel())
                )
                off = float(differences.max(initial=0.0))
            largest[name] = max(largest.get(name, 0.0), off)
    print(f"{title}: {len(found)} of {len(expected)} conformers")
    for name, off in largest.items():
        print(f"  {name:<13} largest difference {off:.1e} (relative above 1)")
    missed = [
        f"{title}: {name} is off by {off:.1e}" for name, off in largest.items() if off > BOUND
    ]
    if len(found) != len(expected) or not largest:
        missed.append(f"{title}: {len(found)} of {len(expected)} conformers were read")
    return {"conformers": len(found), "largest": largest}, missed
