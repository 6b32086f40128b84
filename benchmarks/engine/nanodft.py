"""How far nanoDFT is from PySCF, and how long a first `nanodft benzene` takes.

seconds   the whole process with nothing compiled before, the median of three
energies  ten molecules in float64 and float32; B3LYP/STO-3G, grid level 0, PySCF converged to
          1e-11 Hartree
forces    water by differentiating the energy, against PySCF
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
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.molecule.named.geometries import molecule_from_text
from pyscf_ipu.nanodft.dft import DEFAULT, Theory, forces, scf
from pyscf_ipu.nanodft.table import pyscf_forces, pyscf_result

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
        row = {"molecule": name, "PySCF": reference.energy}
        for precision, unit in (("float64", 1.0), ("float32 [eV]", HARTREE_TO_EV)):
            found = scf(molecule, Theory(precision=precision.split()[0]))
            row[precision] = unit * (found.energy - reference.energy)
        rows.append(row)
    harness.table(rows)
    largest = max(abs(row["float64"]) for row in rows)
    print(f"largest float64 error {largest:.1e} Hartree (bound {ENERGY_BOUND:g})")
    return rows, ["error in float64"] if largest > ENERGY_BOUND else []


def force_errors() -> tuple[Any, list[str]]:
    """Water's forces against PySCF's with the grid's response."""
    molecule = molecule_from_text("O 0.1 0 0; H 0 0 1; H 0 0.9 0.2")
    field, _ = pyscf_result(molecule, DEFAULT)
    took, found = harness.timed(forces, molecule, scf(molecule, DEFAULT), DEFAULT)
    error = float(np.abs(found - pyscf_forces(field)).max())
    print(f"forces: {error:.1e} Ha/Bohr, {took:.0f} s")
    return error, ["forces"] if error > FORCE_BOUND else []


if __name__ == "__main__":
    sys.exit(main())
