"""nanoDFT: how far from PySCF, and how long a first `nanodft benzene` takes.

    .venv/bin/python benchmarks/nanodft.py                  energies and the time of the command
    .venv/bin/python benchmarks/nanodft.py --forces         also forces by differentiating integrals

Energies: ten molecules in float64 with both sources of integrals, and in float32; B3LYP/STO-3G,
grid level 0, PySCF converged to 1e-11 Hartree.  Time: three fresh processes, each with an empty
folder for compiled programs, so everything is compiled; the median counts.  Ends with status 1 if a
bound is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from pyscf_ipu import Settings
from pyscf_ipu.nanodft import DEFAULT, forces, scf
from pyscf_ipu.nanodft_molecules import molecule_from_text
from pyscf_ipu.nanodft_table import pyscf_forces, pyscf_result
from pyscf_ipu.units import HARTREE_TO_EV

MOLECULES = (
    "hydrogen", "lithium hydride", "nitrogen", "water", "ammonia", "methane", "formaldehyde",
    "hydrogen chloride", "formamide", "benzene",
)  # fmt: skip
ENERGY_BOUND, FORCE_BOUND, SECONDS_BOUND = 1e-6, 1e-6, 10.0
RUNS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forces", action="store_true", help="minutes of compilation")
    arguments = parser.parse_args()
    met = [seconds(), energies()]
    if arguments.forces:
        met.append(force_errors())
    return 0 if all(met) else 1


def energies() -> bool:
    """A row a molecule: PySCF's energy and our errors; whether float64 is within the bound."""
    print(
        f"\n{'molecule':18} {'PySCF/Ha':>14} {'engine/Ha':>10} {'pyscf/Ha':>10} {'float32/eV':>11}"
    )
    largest = 0.0
    for name in MOLECULES:
        molecule = molecule_from_text(name)
        _, reference = pyscf_result(molecule, DEFAULT)
        errors = [scf(molecule, DEFAULT, x).energy - reference.energy for x in ("engine", "pyscf")]
        single = scf(molecule, Settings(precision="float32")).energy - reference.energy
        largest = max(largest, *map(abs, errors))
        print(
            f"{name:18} {reference.energy:14.8f} {errors[0]:+10.1e} {errors[1]:+10.1e} "
            f"{single * HARTREE_TO_EV:+11.4f}"
        )
    print(f"largest float64 error {largest:.1e} Hartree (bound {ENERGY_BOUND:g})")
    return largest <= ENERGY_BOUND


def seconds() -> bool:
    """Wall time of `nanodft benzene`, the whole process; whether the median is within the bound."""
    taken = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "pyscf_ipu.nanodft_command", "benzene"],
                check=True, stdout=subprocess.DEVNULL,
                env={**os.environ, "PYSCF_IPU_CACHE": folder},
            )  # fmt: skip
            taken.append(time.perf_counter() - start)
    print(f"nanodft benzene: {', '.join(f'{t:.1f}' for t in taken)} s (bound {SECONDS_BOUND:g})")
    return float(np.median(taken)) <= SECONDS_BOUND


def force_errors() -> bool:
    """Water's forces from both sources of integrals against PySCF with the grid's response."""
    molecule = molecule_from_text("O 0.1 0 0; H 0 0 1; H 0 0.9 0.2")
    field, _ = pyscf_result(molecule, DEFAULT)
    expected, largest = pyscf_forces(field), 0.0
    for source in ("pyscf", "engine"):
        found = scf(molecule, DEFAULT, source)
        start = time.perf_counter()
        error = np.abs(forces(molecule, found, DEFAULT, source) - expected).max()
        print(f"forces, {source}: {error:.1e} Ha/Bohr, {time.perf_counter() - start:.0f} s")
        largest = max(largest, float(error))
    return largest <= FORCE_BOUND


if __name__ == "__main__":
    sys.exit(main())
