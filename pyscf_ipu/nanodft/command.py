"""The `nanodft` command."""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import tyro

from pyscf_ipu.base.command_line.parse import HELP, command
from pyscf_ipu.base.terminal import exit_code

MOLECULE = (
    'A name such as benzene, "O 0 0 0; H 0 0 1; H 0 1 0" in Angstrom, an XYZ or SDF file, a '
    "SMILES, an amino acid as ALA, c20, or a row of carbons as c_5."
)


@dataclass(frozen=True)
class Nanodft:
    """Restricted Kohn-Sham DFT of a small molecule, one line per SCF cycle."""

    groups: ClassVar = {"level of theory": "basis xc grid_level precision max_cycles"}

    molecule: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MOLECULE", help=MOLECULE)]
    basis: str = "sto-3g"
    """A PySCF basis-set name with s, p, d and f shells."""
    xc: str = "b3lyp"
    """hf, lda, pbe, pbe0, blyp, b3lyp or b3lyp5."""
    charge: int | None = None
    """Total charge in units of e; if not given, that of the file or the SMILES, or 0."""
    grid_level: int = 0
    """Theory of PySCF's integration grids, 0 (coarse) to 9 (fine)."""
    precision: str = "float64"
    """float64 or float32."""
    max_cycles: int = 50
    """Maximum number of SCF cycles."""
    compare: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Also compute with PySCF, and print every cycle's error."""
    forces: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Also print the forces."""

    def __call__(self) -> int:
        """Compute and print; returns the exit code.

        Raises:
            UsageError: the molecule or an option cannot be used.
            ConvergenceError: the SCF has not converged within --max-cycles.
        """
        from pyscf_ipu.base.host.disk_cache import keep_programs
        from pyscf_ipu.base.units import HARTREE_TO_EV
        from pyscf_ipu.molecule.named.argument import find_molecule
        from pyscf_ipu.nanodft import dft, table

        start = time.perf_counter()
        molecule = find_molecule(self.molecule, self.charge)
        level = dft.Theory(
            basis=self.basis,
            xc=self.xc,
            grid_level=self.grid_level,
            precision=self.precision,
            max_cycles=self.max_cycles,
        )
        dft.check(molecule, level)
        keep_programs()
        console = table.wide_console()
        reference = table.pyscf_result(molecule, level) if self.compare else None
        with table.growing_table(console, reference) as on_cycle:
            result = dft.scf(molecule, level, on_cycle=on_cycle)
        console.print(
            f"{molecule!r}, {self.xc}/{self.basis}, grid level {self.grid_level}, "
            f"{self.precision}\n"
            f"energy {result.energy:.9f} Hartree (of which nuclear repulsion "
            f"{result.terms.nuclear_repulsion:.6f}), gap {result.gap * HARTREE_TO_EV:.4f} eV, "
            f"{len(result.mo_energy)} AOs, {molecule.n_electrons} electrons, "
            f"{result.cycles} cycles, {time.perf_counter() - start:.1f} s",
            soft_wrap=True,
        )
        if reference:
            table.print_difference(console, result, reference)
        if self.forces:
            values = dft.forces(molecule, result, level)
            console.print(table.force_table(molecule, values, reference))
        return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    # Before NumPy is imported: matrices so small make threads wait for each other.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

    words = sys.argv[1:] if arguments is None else arguments
    return exit_code("nanodft", lambda: command(Nanodft, "nanodft", words or HELP))


if __name__ == "__main__":
    sys.exit(main())
