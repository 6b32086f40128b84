"""The `nanodft` command: a small molecule's SCF, cycle by cycle, beside PySCF's result.

Energies of the table are in Hartree, gap and error in eV; geometries are given in Angstrom.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

if TYPE_CHECKING:
    from rich.table import Table

    from pyscf_ipu import Molecule, Settings
    from pyscf_ipu.nanodft import Result

WIDTH = 88  # of the table, where the output is no terminal
GOOD_EV, FAIR_EV = 1e-3, 0.0434  # green below, yellow below one kcal/mol, red above


@dataclass(frozen=True)
class Nanodft:
    """Restricted Kohn-Sham DFT of a small molecule, one line per SCF cycle."""

    molecule: tyro.conf.Positional[str]
    """A name such as benzene, or "O 0 0 0; H 0 0 1; H 0 1 0" in Angstrom."""
    basis: str = "sto-3g"
    """A PySCF basis-set name with s, p and d shells."""
    xc: str = "b3lyp"
    """hf, lda, pbe, pbe0, blyp, b3lyp or b3lyp5."""
    charge: int = 0
    """Total charge in units of e."""
    grid_level: int = 0
    """PySCF's integration grids, 0 (coarse) to 9."""
    precision: str = "float64"
    """float64 or float32."""
    integrals: str = "engine"
    """Where integrals come from: engine (this package) or pyscf."""
    max_cycles: int = 50
    """SCF cycles at most."""
    compare: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Also compute with PySCF, and print every cycle's error."""
    forces: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Also print the forces (they compile for a minute or more with integrals=engine)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code: 0, or 2 after one sentence on stderr."""
    args = tyro.cli(Nanodft, prog="nanodft", args=arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA's notes on kept programs
    from pyscf_ipu.errors import ConvergenceError

    try:
        run(args)
    except (ValueError, ConvergenceError) as error:
        print(f"nanodft: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("nanodft: interrupted", file=sys.stderr)
        return 130
    return 0


def run(args: Nanodft) -> None:
    """Compute and print.

    Raises InvalidMolecule or ValueError for what cannot be computed, ConvergenceError.
    """
    from rich.console import Console
    from rich.live import Live

    from pyscf_ipu import Settings, enable_disk_cache, nanodft
    from pyscf_ipu.nanodft_molecules import molecule_from_text
    from pyscf_ipu.units import HARTREE_TO_EV

    start = time.perf_counter()
    molecule = molecule_from_text(args.molecule, args.charge)
    settings = Settings(
        args.basis, args.xc, args.grid_level, args.precision, max_cycles=args.max_cycles
    )
    nanodft.check(molecule, settings, args.integrals)
    enable_disk_cache()
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    field, reference = pyscf_result(molecule, settings) if args.compare else (None, None)
    table = cycle_table(reference)
    with Live(table, console=console, auto_refresh=False) as live:

        def on_cycle(result: Result) -> None:
            table.add_row(*cycle_row(str(result.cycles), result, reference))
            live.refresh()

        found = nanodft.scf(molecule, settings, args.integrals, on_cycle)
        if reference:
            table.add_section()
            table.add_row(*cycle_row("P", reference, None), "")
    if not console.is_terminal:
        console.print()  # Live leaves the last line open there
    console.print(
        f"{molecule!r}, {args.xc}/{args.basis}, grid level {args.grid_level}, {args.precision}, "
        f"integrals: {args.integrals}\n"
        f"energy {found.energy:.9f} Hartree (of which the nuclei's repulsion "
        f"{found.terms.nuclear_repulsion:.6f}), gap {found.gap * HARTREE_TO_EV:.4f} eV, "
        f"{len(found.mo_energy)} AOs, {molecule.n_electrons} electrons, "
        f"{found.cycles} cycles, {time.perf_counter() - start:.1f} s",
        soft_wrap=True,
    )
    if reference:
        error = (found.energy - reference.energy) * HARTREE_TO_EV
        style = colour(error)
        console.print(f"[{style}]energy - PySCF's (row P): {error:+.2e} eV[/]")
    if args.forces:
        values = nanodft.forces(molecule, found, settings, args.integrals)
        console.print(force_table(molecule, values, pyscf_forces(field) if field else None))


def cycle_table(reference: Result | None) -> Table:
    """An empty table with the columns of `cycle_row`."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0))
    heads = ["", "energy", "kinetic", "attract", "Coulomb", "exchange", "xc", "gap/eV", "\\[F,D]"]
    for head in [*heads, "error/eV"] if reference else heads:
        table.add_column(head, justify="right", no_wrap=True, header_style="bold")
    return table


def cycle_row(label: str, result: Result, reference: Result | None) -> list[str]:
    """Energy, its terms, gap, commutator and error of one cycle, as text."""
    from pyscf_ipu.units import HARTREE_TO_EV

    row = [label, f"[bold]{result.energy:.6f}[/]"]
    row += [f"{term:.3f}" for term in result.terms[:5]]
    commutator = "" if math.isnan(result.commutator) else f"{result.commutator:.0e}"
    row += [f"{result.gap * HARTREE_TO_EV:.3f}", commutator]
    if reference:
        error = (result.energy - reference.energy) * HARTREE_TO_EV
        row.append(f"[{colour(error)}]{error:+.1e}[/]")
    return row


def colour(error_ev: float) -> str:
    """How an error is shown."""
    return "green" if abs(error_ev) < GOOD_EV else "yellow" if abs(error_ev) < FAIR_EV else "red"


def force_table(molecule: Molecule, forces: np.ndarray, reference: np.ndarray | None) -> Table:
    """Forces of every atom in Hartree/Bohr."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), title="forces / (Hartree/Bohr)")
    for head in ["", "x", "y", "z", *(["- PySCF's"] if reference is not None else [])]:
        table.add_column(head, justify="right", no_wrap=True, header_style="bold")
    for i, (symbol, force) in enumerate(zip(molecule.symbols, forces, strict=True)):
        row = [symbol, *(f"{x:.6f}" for x in force)]
        if reference is not None:
            row.append(f"{np.abs(force - reference[i]).max():.0e}")
        table.add_row(*row)
    return table


def pyscf_field(molecule: Molecule, settings: Settings) -> Any:
    """PySCF's mean-field object at the same level of theory, converged."""
    from pyscf import dft, scf

    from pyscf_ipu.nanodft import FUNCTIONALS
    from pyscf_ipu.nanodft_integrals import mole_of

    mole = mole_of(molecule, settings)
    if settings.xc.lower() == "hf":
        field = scf.RHF(mole)
    else:
        field = dft.RKS(mole, xc=FUNCTIONALS[settings.xc.lower()][2])
        field.grids.level = settings.grid_level
    field.conv_tol, field.conv_tol_grad, field.max_cycle = 1e-11, 1e-7, 200
    field.kernel()
    return field


def pyscf_result(molecule: Molecule, settings: Settings) -> tuple[Any, Result]:
    """PySCF's object, and what it found in nanoDFT's form."""
    from pyscf_ipu.nanodft import FUNCTIONALS, Result, Terms

    field = pyscf_field(molecule, settings)
    mole, density = field.mol, np.asarray(field.make_rdm1())
    coulomb, exchange = field.get_jk()
    known = [
        np.vdot(density, mole.intor("int1e_kin")),
        np.vdot(density, mole.intor("int1e_nuc")),
        np.vdot(density, coulomb) / 2,
        -FUNCTIONALS[settings.xc.lower()][1] * np.vdot(density, exchange) / 4,
    ]
    nuclear = mole.energy_nuc()
    semilocal = field.e_tot - nuclear - sum(known)
    fock, levels = np.asarray(field.get_fock()), np.asarray(field.mo_energy)
    occupied = molecule.n_electrons // 2
    gap = levels[occupied] - levels[occupied - 1] if occupied < len(levels) else np.nan
    terms = Terms(*map(float, (*known, semilocal, nuclear)))
    found = Result(
        float(field.e_tot), terms, levels, np.asarray(field.mo_coeff), density, fock, float(gap),
        int(field.cycles), math.nan,
    )  # fmt: skip
    return field, found


def pyscf_forces(field: Any) -> np.ndarray:
    """PySCF's forces [A, 3] in Hartree/Bohr, with the response of the grid."""
    gradient = field.nuc_grad_method()
    if hasattr(gradient, "grid_response"):
        gradient.grid_response = True
    return -np.asarray(gradient.kernel())


if __name__ == "__main__":
    sys.exit(main())
