"""Open shells against energies that others published.

psi4   BH3+ in cc-pVDZ and NH2 in aug-cc-pVDZ, by Psi4, from the reference data of QCEngine's tests
       (https://github.com/MolSSI/QCEngine, BSD-3): UHF, which CFOUR, GAMESS and NWChem confirm, and
       UKS with 99 radial and 590 angular points, wB97X with (500, 1202)
nist   free atoms in the tables of the local spin density approximation

S. Kotochigova, Z. H. Levine, E. L. Shirley, M. D. Stiles, C. W. Clark, Phys. Rev. A 55, 191 (1997),
doi:10.1103/PhysRevA.55.191, solved radial equations without a basis, with the same functional.
Their atoms are spheres, so these are atoms of closed and of half-filled shells.  What is left is
the error of the basis set, uncontracted s and p functions, above the table's energy.
"""

import sys
from typing import Any

from benchmarks import harness
from pyscf_ipu import Molecule, Settings, Solver, uks

SPECIES = {
    "BH3+": Molecule.from_symbols(
        ["B", "H", "H", "H"],
        [[0.10369114, 0, 0], [-1.13269886, 0, 0], [3, 0.37149, 0], [3, -0.37149, 0]],
        unit="angstrom",
        charge=1,
        multiplicity=2,
    ),
    "NH2": Molecule.from_symbols(
        ["N", "H", "H"],
        [
            [0.0, 0.0, -0.145912918634892],
            [0.0, -1.511214298139, 1.013682596946108],
            [0.0, 1.511214298139, 1.013682596946108],
        ],
        unit="bohr",
        multiplicity=2,
    ),
}
PSI4 = {
    ("BH3+", "cc-pvdz"): {
        "hf": -25.94513842869638,
        "pbe": -26.04681636799003,
        "b3lyp": -26.11400578326430,
        "b3lyp5": -26.08931425944648,
        "wb97x": -26.09949538872584,
    },
    ("NH2", "aug-cc-pvdz"): {
        "hf": -55.57513805247548,
        "pbe": -55.81473169701641,
        "b3lyp": -55.89008852165053,
        "b3lyp5": -55.85734544636958,
        "wb97x": -55.86921249027672,
    },
}
"""Energies in Hartree, by functional."""
PSI4_BOUND_HARTREE = 5e-6
ATOMS = {
    "H": (2, -0.478671),
    "He": (1, -2.834836),
    "Li": (2, -7.343957),
    "Be": (1, -14.447209),
    "N": (4, -54.136799),
    "Ne": (1, -128.233481),
    "Na": (2, -161.447625),
    "Mg": (1, -199.139406),
    "P": (4, -340.005799),
    "Ar": (1, -525.946195),
}
"""Multiplicity, and the total energy in Hartree."""
LEVEL = Settings(xc="lda", basis="dyall4zp", grid_level=5, precision="float64")
BOUND_HARTREE = 2e-4


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parts = {"psi4": psi4, "nist": nist}
    harness.add_names(parser, "parts", parts)
    args = parser.parse_args()
    return harness.run_parts(parts, args.parts, args.out)


def psi4() -> tuple[dict[str, Any], list[str]]:
    """Our energies less Psi4's."""
    rows = []
    for (name, basis), energies in PSI4.items():
        for xc, energy in energies.items():
            level = Settings(xc=xc, basis=basis, grid_level=(99, 590), precision="float64")
            ours = uks(SPECIES[name], solver=Solver(level))
            above = float(ours.energy) - energy
            rows.append({"species": name, "xc": xc, "energy": energy, "above_hartree": above})
    return figures(rows, PSI4_BOUND_HARTREE, "species")


def nist() -> tuple[dict[str, Any], list[str]]:
    """Our energies above those of the tables."""
    return figures([compared(name, LEVEL) for name in ATOMS], BOUND_HARTREE, "atom")


def figures(
    rows: list[dict[str, Any]], bound: float, name: str
) -> tuple[dict[str, Any], list[str]]:
    """All rows, and those beyond a bound in Hartree."""
    harness.table(rows)
    missed = [str(row[name]) for row in rows if not abs(row["above_hartree"]) <= bound]
    return {"rows": rows}, missed


def compared(name: str, level: Settings) -> dict[str, Any]:
    """Our energy above the table's."""
    multiplicity, energy = ATOMS[name]
    mol = Molecule.from_symbols([name], [[0.0, 0.0, 0.0]], unit="bohr", multiplicity=multiplicity)
    ours = uks(mol, solver=Solver(level))
    return {
        "atom": name,
        "energy": float(ours.energy),
        "above_hartree": float(ours.energy) - energy,
        "s_squared": float(ours.s_squared or 0.0),
        "status": ours.status,
    }


if __name__ == "__main__":
    sys.exit(main())
