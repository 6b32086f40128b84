"""How far nanoDFT is from PySCF, and how long a first `nanodft benzene` takes.

seconds   the whole process with nothing compiled before, the median of three
energies  ten molecules, float64 with both sources of integrals, and float32; B3LYP/STO-3G, grid
          level 0, PySCF converged to 1e-11 Hartree
forces    water by differentiating the integrals, against PySCF; minutes of compilation
"""

import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.pool import SINGLE
from pyscf_ipu import Settings
from pyscf_ipu.nanodft.dft import DEFAULT, forces, scf
from pyscf_ipu.nanodft.molecules import molecule_from_text
from pyscf_ipu.nanodft.table import pyscf_forces, pyscf_result
from pyscf_ipu.units import HARTREE_TO_EV

MOLECULES = (
    "hydrogen",
    "lithium hydride",
    "nitrogen",
    "water",
    "ammonia",
    "methane",
    "formaldehyde",
    "hydrogen chloride",
    "formamide",
    "benzene",
)
ENERGY_BOUND, FORCE_BOUND, SECONDS_BOUND = 1e-6, 1e-6, 10.0
RUNS = 3
SOURCES = ("engine", "pyscf")


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--forces", action="store_true", help="also the forces")
    args = parser.parse_args()
    parts: dict[str, harness.Part] = {"seconds": seconds, "energies": energies}
    if args.forces:
        parts["forces"] = force_errors
    return harness.run_parts(parts, [], args.out)


def seconds() -> tuple[Any, list[str]]:
    """Wall time of `nanodft benzene`, the whole process."""
    command = [sys.executable, "-m", "pyscf_ipu.nanodft.command", "benzene"]
    env = {name: value for name, value in os.environ.items() if name not in SINGLE}
    taken = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            env["PYSCF_IPU_CACHE"] = folder
            taken.append(harness.timed(lambda: subprocess.check_output(command, env=env))[0])
    print(f"nanodft benzene: {', '.join(f'{t:.1f}' for t in taken)} s (bound {SECONDS_BOUND:g})")
    return taken, ["too slow"] if statistics.median(taken) > SECONDS_BOUND else []


def energies() -> tuple[Any, list[str]]:
    """PySCF's energy and our errors in Hartree, molecule by molecule."""
    rows = []
    for name in MOLECULES:
        molecule = molecule_from_text(name)
        _, reference = pyscf_result(molecule, DEFAULT)
        errors = {x: scf(molecule, DEFAULT, x).energy - reference.energy for x in SOURCES}
        single = (
            scf(molecule, Settings(precision="float32", grid_level=0)).energy - reference.energy
        )
        ev = {"float32 [eV]": single * HARTREE_TO_EV}
        rows.append({"molecule": name, "PySCF": reference.energy, **errors, **ev})
    harness.table(rows)
    largest = max(abs(row[x]) for row in rows for x in SOURCES)
    print(f"largest float64 error {largest:.1e} Hartree (bound {ENERGY_BOUND:g})")
    return rows, ["error in float64"] if largest > ENERGY_BOUND else []


def force_errors() -> tuple[Any, list[str]]:
    """Water's forces from both sources of integrals against PySCF with the grid's response."""
    molecule = molecule_from_text("O 0.1 0 0; H 0 0 1; H 0 0.9 0.2")
    field, _ = pyscf_result(molecule, DEFAULT)
    expected, errors = pyscf_forces(field), {}
    for source in SOURCES:
        result = scf(molecule, DEFAULT, source)
        took, found = harness.timed(forces, molecule, result, DEFAULT, source)
        errors[source] = float(np.abs(found - expected).max())
        print(f"forces, {source}: {errors[source]:.1e} Ha/Bohr, {took:.0f} s")
    return errors, ["forces"] if max(errors.values()) > FORCE_BOUND else []


if __name__ == "__main__":
    sys.exit(main())
