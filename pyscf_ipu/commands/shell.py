"""The commands of one molecule: their options, and what each does in turn."""

from __future__ import annotations

import warnings
from collections.abc import Container
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from tyro.conf import FlagCreatePairsOff, Positional, Suppress, arg

from pyscf_ipu.base.command_line.options import JsonTarget
from pyscf_ipu.base.command_line.targets import TO_STDOUT, check_folders, put_json, writing
from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.base.terminal import say
from pyscf_ipu.settings import Settings

if TYPE_CHECKING:
    from pyscf_ipu.commands.report import Report
    from pyscf_ipu.molecule.molecule import Molecule
    from pyscf_ipu.solver.solver import Solver

Flag = Annotated[bool, FlagCreatePairsOff]
Level = Annotated[Settings, FlagCreatePairsOff, arg(name="level of theory")]
DEFAULT_LEVEL = Settings()
FREQUENCIES_LEVEL = Settings(precision="float64")
"""As in `pyscf_ipu.frequencies`: float32 forces are too noisy for differences."""

FileName = Annotated[Path | None, arg(metavar="FILE")]


@dataclass(frozen=True)
class OneMolecule:
    """The options that all these commands have."""

    groups: ClassVar = {"files": "molden json"}
    open_shell: ClassVar = True
    """Whether the multiplicity need not be 1."""

    molecule: Annotated[Positional[str], arg(metavar="MOLECULE")]
    """An XYZ or SDF file, a geometry as "O 0 0 0; H 0 0 1; ..." in Angstrom, a name such as
    benzene, an amino acid as ALA, c20, a row of carbons as c_5, or a SMILES, in that order."""
    level: Level = DEFAULT_LEVEL
    """Level of theory."""
    preset: Annotated[str | None, arg(metavar="NAME")] = None
    """The level of a published dataset, qm1b, qm9, pubchemqc, ani1x, transition1x, qmugs, rmd17,
    qh9, spice, omol25 or openff, or of a method, r2scan-3c or b97-3c.  Options of the level change
    it."""
    charge: int | None = None
    """Total charge in units of e; if not given, that of the file or the SMILES, or 0."""
    multiplicity: int | None = None
    """2S + 1: 2 for a radical, 3 for a triplet; if not given, that of the file or the SMILES,
    or 1."""
    seed: int = 0
    """RDKit's seed for the geometry of a SMILES."""
    forces: Flag = False
    """Also print the forces on the atoms."""
    compare: Flag = False
    """Also compute with PySCF in float64, and print the differences."""
    molden: FileName = None
    """Write the orbitals to this Molden file."""
    json: JsonTarget = None
    """Print JSON instead of text, or write it to FILE.json."""
    given: Suppress[tuple[str, ...]] = ()
    """The options of the command line; they change a preset also where they are the default."""

    def __call__(self) -> int:
        """Run the command; returns the exit code.

        Raises:
            UsageError: the molecule or an option cannot be used.
            ConvergenceError: the SCF does not converge.
            MissingPackage: the command needs ASE, which is not installed.
        """
        self.check_options()
        from pyscf_ipu.base.host.disk_cache import keep_programs
        from pyscf_ipu.commands.report import Report
        from pyscf_ipu.molecule.named.argument import find_molecule

        settings = self.settings().check()
        solver = self.solver(settings)
        report = Report(self.json, has_files=any(f not in (None, TO_STDOUT) for f in self.files()))
        with warnings.catch_warnings(record=True) as doubts:
            warnings.simplefilter("always")
            molecule = find_molecule(
                self.molecule, self.charge, self.seed, multiplicity=self.multiplicity
            )
        for doubt in doubts:
            say(f"pyscf-ipu: warning: {doubt.message}", to_stderr=True)
        molecule.check(settings.precision, open_shell=self.open_shell)
        keep_programs()
        code = self.compute(molecule, solver, report)
        report.finish()
        return code

    def settings(self) -> Settings:
        """The level of theory: the options', or the preset's with what they change."""
        if self.preset is None:
            return self.level
        usual = type(self).level
        own, chosen = changes(DEFAULT_LEVEL, usual), changes(usual, self.level, self.given)
        return Settings.preset(self.preset).changed(**own | chosen)

    def solver(self, settings: Settings) -> Solver:
        """What computes."""
        from pyscf_ipu.solver.solver import Solver

        return Solver(settings)

    def check_options(self) -> None:
        """Raise UsageError, before anything is computed, for what cannot be done."""
        check_folders(self.files())

    def files(self) -> list[Path | None]:
        """The files that the command writes."""
        return [self.molden, self.json]

    def compute(self, molecule: Molecule, solver: Solver, report: Report) -> int:
        """Compute and report; returns the exit code."""
        raise NotImplementedError

    def single_point(
        self,
        molecule: Molecule,
        solver: Solver,
        report: Report,
        guess: Literal["atoms", "mixed"] | None = None,
    ) -> None:
        """Energy, and what the options ask for; of an open shell from a guess."""
        from pyscf_ipu.commands.report import single_point
        from pyscf_ipu.solver.solver import Wanted, usual_guess

        start = guess or usual_guess(molecule)
        guesses = (start,) if start else None
        wanted = Wanted(self.molden is not None, self.forces, guesses=guesses)
        result = single_point(molecule, solver, report, wanted=wanted, compare=self.compare)
        if self.molden is not None:
            with writing(self.molden):
                result.to_molden(self.molden)
            report.add(f"orbitals in {self.molden}", molden=str(self.molden))


def changes(usual: Settings, level: Settings, given: Container[str] = ()) -> dict[str, Any]:
    """The fields in which a level differs from another, and those that were given."""
    values = {f.name: getattr(level, f.name) for f in fields(Settings)}
    return {n: value for n, value in values.items() if n in given or value != getattr(usual, n)}


@dataclass(frozen=True)
class RksCommand(OneMolecule):
    """Compute the energy of a molecule that is a closed shell."""

    open_shell: ClassVar = False

    ipu: Annotated[str | None, arg(metavar="TARGET[:IPUS]")] = None
    """Also price the run on a simulated IPU: bow or gc200."""
    machine: str | None = None
    """Compute by the program of a simulated IPU, bow or gc200, which prices its own run; also one
    with other figures, bow:tile_clock_frequency=1.5e9,...; or cpu, or gpu. If not given, what JAX
    computes on."""
    run_vertices: Flag = False
    """With a simulated IPU: compute the integrals by its vertices, too, instead of by this host."""

    def solver(self, settings: Settings) -> Solver:
        """What computes, on the machine that was asked for."""
        from pyscf_ipu.api.machine_names import find_machine
        from pyscf_ipu.solver.solver import Solver

        machine = find_machine(self.machine, self.run_vertices)
        if machine is not None:
            machine.check(forces=self.forces, stability=False)
        return Solver(settings, machine)

    def check_options(self) -> None:
        """Also raise UsageError if there is no such chip."""
        super().check_options()
        if self.ipu is not None:
            from pyscf_ipu.commands.simulated import checked_target

            checked_target(self.ipu)

    def compute(self, molecule: Molecule, solver: Solver, report: Report) -> int:
        """Compute and report; returns the exit code."""
        from pyscf_ipu.molecule.parts import is_sdf

        if molecule.smiles and not is_sdf(Path(self.molecule)):
            report.add("geometry: RDKit's, not relaxed; pyscf-ipu optimize relaxes it")
        if self.ipu is not None:
            from pyscf_ipu.ipu.engine.command import check_priced

            check_priced(molecule, solver.settings)
        self.single_point(molecule, solver, report)
        if self.ipu is not None:
            from pyscf_ipu.commands.simulated import simulated

            simulated(molecule, solver.settings, self.ipu, report=report)
        return 0


@dataclass(frozen=True)
class UksCommand(OneMolecule):
    """Compute the energy of a radical, an ion, a triplet or an atom: an open shell."""

    guess: Literal["atoms", "mixed"] = "atoms"
    """atoms: superposed atoms with as many alpha as beta electrons; mixed: go on from mixed
    frontier orbitals, so that the spins of a diradical or of a torn bond part."""

    def compute(self, molecule: Molecule, solver: Solver, report: Report) -> int:
        """Compute and report; returns the exit code."""
        self.single_point(molecule, solver, report, guess=self.guess)
        return 0


@dataclass(frozen=True)
class OptimizeCommand(OneMolecule):
    """Find the geometry of least energy next to the given one; exit code 1 if it is not found."""

    groups: ClassVar = {"files": "xyz molden json"}

    max_steps: int = 200
    """Steps at most."""
    xyz: FileName = None
    """Write the geometry to this XYZ file instead of printing it."""

    def files(self) -> list[Path | None]:
        """The files that the command writes."""
        return [*super().files(), self.xyz]

    def compute(self, molecule: Molecule, solver: Solver, report: Report) -> int:
        """Compute and report; returns the exit code."""
        from pyscf_ipu.api.optimize import Optimized, optimize
        from pyscf_ipu.commands.report import xyz_text

        best = optimize(molecule, solver=solver, max_steps=self.max_steps)
        assert isinstance(best, Optimized)  # one, for one molecule
        gain = f"{best.energies[0] - best.energy:.6f} Hartree below the start"
        record = {"converged": best.converged, "message": best.message, "energies": best.energies}
        report.add(f"{best.message}; {gain}", optimization=record)
        text = xyz_text(best.molecule, best.energy)
        if self.xyz is not None:
            put_json(text, self.xyz)
        report.add(text if self.xyz is None else f"geometry in {self.xyz}")
        self.single_point(best.molecule, solver, report)
        return 0 if best.converged else 1


@dataclass(frozen=True)
class FrequenciesCommand(OneMolecule):
    """Compute vibrations, infrared intensities and thermochemistry, at the nearest minimum."""

    level: Level = FREQUENCIES_LEVEL
    """Level of theory."""
    as_given: Flag = False
    """Keep the geometry; otherwise it is optimised first."""
    temperature: float = 298.15
    """Kelvin, of the ideal gas."""
    pressure: float = 101325.0
    """Pascal, of the ideal gas."""
    symmetry_number: int = 1
    """Of rotation, in the entropy: 2 for water, 12 for methane."""

    def check_options(self) -> None:
        """Also raise UsageError for conditions that no gas has."""
        super().check_options()
        for name in ("temperature", "pressure", "symmetry_number"):
            if not getattr(self, name) > 0:
                option = name.replace("_", "-")
                raise UsageError(f"--{option} is {getattr(self, name)}: it must be above 0")

    def compute(self, molecule: Molecule, solver: Solver, report: Report) -> int:
        """Compute and report; returns the exit code."""
        from pyscf_ipu.api.frequencies import frequencies
        from pyscf_ipu.api.optimize import FORCE_LIMIT, Optimized, optimize

        converged = True
        if not self.as_given:
            limit = FORCE_LIMIT if solver.settings.precision == "float32" else FORCE_LIMIT / 10
            best = optimize(molecule, solver=solver, max_force_hartree_per_bohr=limit)
            assert isinstance(best, Optimized)  # one, for one molecule
            molecule, converged = best.molecule, best.converged
            report.add(f"optimisation: {best.message}", converged=converged)
        self.single_point(molecule, solver, report)
        result = frequencies(
            molecule,
            temperature_kelvin=self.temperature,
            pressure_pascal=self.pressure,
            symmetry_number=self.symmetry_number,
            solver=solver,
        )
        report.add(repr(result), frequencies=result.to_dict())
        return 0 if converged else 1
