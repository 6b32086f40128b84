"""The work of `pyscf-ipu profile`: one SCF on a simulated IPU."""

import dataclasses

import numpy as np

from pyscf_ipu.base.errors import UsageError
from pyscf_ipu.elements.basis_sets import ALL_ELECTRON
from pyscf_ipu.ipu.chip.target import Target, priced_target
from pyscf_ipu.ipu.engine.chip_machine import BEYOND_KRYPTON, check_functional
from pyscf_ipu.ipu.engine.tile_machine import machine_of
from pyscf_ipu.ipu.report.profile import Profile
from pyscf_ipu.ipu.simulate import profile_of, simulate
from pyscf_ipu.ipu.steps.streams import Streams
from pyscf_ipu.molecule.molecule import Molecule
from pyscf_ipu.numerics.two_words import to_float64
from pyscf_ipu.results.printed import level
from pyscf_ipu.settings import Settings
from pyscf_ipu.solver.rks_core import Arguments, Core, rks_core


def price_rks(
    mol: Molecule, settings: Settings, chip: Target, replicas: int = 1, coarse: int = 0
) -> Profile:
    """The price of one SCF on one IPU, without its results; tables of elements stay on the chip.

    Its loops are counted by running them.  `replicas` is the number of IPUs that do the same for
    other molecules, and share the link to the host.
    """
    core, arguments = _program(mol, settings, chip, coarse=coarse)
    streams = Streams(frozenset((0,)), overlap=True)
    return profile_of(core, chip, *arguments, replicas=replicas, streams=streams)


def check_priced(mol: Molecule, settings: Settings) -> None:
    """Raise UsageError for a molecule or a level that a chip does not compute."""
    check_functional(settings)
    if mol.numbers.max() > ALL_ELECTRON:
        raise UsageError(BEYOND_KRYPTON)


def _program(
    mol: Molecule, settings: Settings, chip: Target, num_ipus: int = 1, coarse: int = 0
) -> tuple[Core, Arguments]:
    """The program of a molecule and its arguments; raises what `check_priced` raises."""
    check_priced(mol, settings)
    return rks_core(mol, settings, lambda shape: machine_of(chip, num_ipus, shape), coarse=coarse)


def profile_rks(
    mol: Molecule,
    settings: Settings | None = None,
    target_name: str = "bow",
    num_ipus: int = 1,
    strict: bool = False,
    replicas: int = 1,
) -> Profile:
    """One SCF of a molecule on a simulated IPU; raises what `rks_core` and `simulate` raise."""
    chip = priced_target(target_name)
    core, arguments = _program(mol, settings or Settings(), chip, num_ipus=num_ipus)
    solution, profile = simulate(core, chip, num_ipus, strict=strict, replicas=replicas)(*arguments)
    energy = float(np.sum([to_float64(t) for t in solution.terms]))
    converged = "converged" if bool(solution.converged) else "not converged"
    note = f"{int(solution.cycles)} SCF cycles, {converged}"
    return dataclasses.replace(
        profile,
        energy_hartree=energy,
        subject=f"{mol.smiles or repr(mol)}, {level(settings or Settings())}",
        notes=(note, *profile.notes),
    )
