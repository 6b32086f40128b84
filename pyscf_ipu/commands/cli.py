"""The `pyscf-ipu` command."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from tyro.conf import FlagCreatePairsOff, arg

from pyscf_ipu.base.command_line.given_words import given_options
from pyscf_ipu.base.command_line.options import JsonTarget
from pyscf_ipu.base.command_line.parse import subcommand
from pyscf_ipu.base.command_line.targets import TO_STDOUT, check_folders, put_json, writing
from pyscf_ipu.base.terminal import exit_code
from pyscf_ipu.commands.shell import (
    FrequenciesCommand,
    OneMolecule,
    OptimizeCommand,
    RksCommand,
    UksCommand,
)
from pyscf_ipu.commands.simulated import target_and_number
from pyscf_ipu.settings import Settings


@dataclass(frozen=True)
class InfoCommand:
    """Print versions, devices, codelets, the folder of compiled programs and the memory."""

    def __call__(self) -> int:
        """Run the command; returns the exit code."""
        print(info())
        return 0


@dataclass(frozen=True)
class ProfileCommand:
    """Price one SCF on a simulated IPU."""

    groups: ClassVar = {
        "level of theory": "basis xc grid_level max_cycles",
        "chip": "target num_ipus replicas compare strict",
        "files": "html json trace",
    }

    smiles: str
    """SMILES of the molecule; RDKit makes its geometry."""
    seed: int = 0
    """RDKit's seed for the geometry."""
    basis: str = Settings.basis
    """A PySCF basis-set name with s, p, d and f shells."""
    xc: str = Settings.xc
    """hf, lda, pbe, pbe0, blyp, b3lyp, b3lyp5, wb97x and others."""
    grid_level: int = 0
    """Level of PySCF's integration grids, 0 (coarse) to 9 (fine)."""
    max_cycles: int = Settings.max_cycles
    """Maximum number of SCF cycles."""
    target: Literal[
        "bow", "bow-pod4", "bow-pod16", "bow-pod64", "bow-pod256",
        "gc200", "gc200-pod4", "gc200-pod16", "gc200-pod64", "gc200-pod256", "gc2",
    ] = "bow"  # fmt: skip
    """The chip to simulate, or a system of 4 to 256 of them."""
    num_ipus: int = 1
    """Number of chips that share the program."""
    replicas: int = 1
    """Copies of the program side by side, each on its own molecule."""
    compare: Annotated[str | None, arg(metavar="TARGET[:IPUS]")] = None
    """Simulate this target too, and print the differences."""
    strict: Annotated[bool, FlagCreatePairsOff] = False
    """Fail if the memory of a tile overflows."""
    html: Path | None = None
    """Write a web page with charts to this file."""
    json: JsonTarget = None
    """Print all figures as JSON instead of the summary, or write them to FILE.json."""
    trace: Path | None = None
    """Write a Chrome trace to this file, for Perfetto."""

    def __call__(self) -> int:
        """Simulate, write the files that were asked for, and print the summary.

        Raises:
            UsageError: the molecule or an option cannot be used.
            TileMemoryError: the memory of a tile overflows, with --strict.
        """
        check_folders((self.html, self.json, self.trace))
        second = target_and_number(self.compare) if self.compare else None
        from pyscf_ipu.base.host.disk_cache import keep_programs
        from pyscf_ipu.ipu.engine.command import profile_rks
        from pyscf_ipu.ipu.report.diff import diff
        from pyscf_ipu.molecule.molecule import Molecule

        settings = Settings(
            basis=self.basis, xc=self.xc, grid_level=self.grid_level, max_cycles=self.max_cycles
        )
        keep_programs()
        mol = Molecule.from_smiles(self.smiles, seed=self.seed)
        profile = profile_rks(
            mol,
            settings,
            self.target,
            num_ipus=self.num_ipus,
            strict=self.strict,
            replicas=self.replicas,
        )
        other = None
        if second:
            target, number = second
            other = profile_rks(mol, settings, target, num_ipus=number, strict=self.strict)
        if self.json:
            put_json(profile.to_json(), self.json)
        if self.html:
            with writing(self.html):
                profile.to_html(self.html, other)
        if self.trace:
            with writing(self.trace):
                profile.to_trace(self.trace)
        if self.json != TO_STDOUT:
            print(profile.summary() + (f"\n\n{diff(profile, other)}" if other else ""))
        return 0


def info() -> str:
    """Versions, devices, codelets in use, folder of the compiled programs, memory."""
    import jax

    from pyscf_ipu.base.host.disk_cache import kept_in
    from pyscf_ipu.base.host.memory_limit import available_bytes
    from pyscf_ipu.codelets import describe

    devices = ", ".join(f"{d.platform}:{d.id} ({d.device_kind})" for d in jax.devices())
    rows = {
        "pyscf_ipu": version("pyscf-ipu"),
        "versions": f"JAX {jax.__version__}, PySCF {version('pyscf')}",
        "devices": devices,
        "codelets": describe(),
        "programs": f"kept in {kept_in()}" if kept_in() else "not kept: PYSCF_IPU_CACHE=off",
        "memory": f"{available_bytes() / 2**30:.1f} GiB",
    }
    return "\n".join(f"{name:<10} {value}" for name, value in rows.items())


COMMANDS = {
    "rks": RksCommand,
    "uks": UksCommand,
    "optimize": OptimizeCommand,
    "frequencies": FrequenciesCommand,
    "info": InfoCommand,
    "profile": ProfileCommand,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    return exit_code("pyscf-ipu", lambda: command_of(words))


def command_of(words: Sequence[str]) -> Callable[[], int]:
    """The command that these words ask for."""
    description = "Kohn-Sham DFT in one compiled function per molecular shape."
    one = subcommand("pyscf-ipu", COMMANDS, words, description=description)
    return replace(one, given=given_options(words)) if isinstance(one, OneMolecule) else one


if __name__ == "__main__":
    sys.exit(main())
