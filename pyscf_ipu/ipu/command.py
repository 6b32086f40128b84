"""`pyscf-ipu profile`: one SCF on a simulated IPU, as text, JSON, a page or a trace."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np

from pyscf_ipu.cache import enable_disk_cache
from pyscf_ipu.core import rks_core
from pyscf_ipu.ipu.diff import diff
from pyscf_ipu.ipu.machine import machine_of
from pyscf_ipu.ipu.profile import Profile
from pyscf_ipu.ipu.simulate import simulate
from pyscf_ipu.ipu.target import TARGETS, target
from pyscf_ipu.molecule import Molecule
from pyscf_ipu.precision import to_float64
from pyscf_ipu.settings import Settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    default = Settings()
    parser.add_argument("--smiles", required=True, help="the molecule; its geometry is RDKit's")
    parser.add_argument("--seed", type=int, default=0, help="of the geometry")
    parser.add_argument("--basis", default=default.basis)
    parser.add_argument("--xc", default=default.xc)
    parser.add_argument("--grid-level", type=int, default=default.grid_level)
    parser.add_argument("--max-cycles", type=int, default=default.max_cycles)
    parser.add_argument("--target", default="bow", choices=sorted(TARGETS))
    parser.add_argument("--num-ipus", type=int, default=1)
    parser.add_argument(
        "--compare", metavar="TARGET[:IPUS]", help="also on this one, with the difference of both"
    )
    parser.add_argument("--strict", action="store_true", help="fail if a tile's memory overflows")
    parser.add_argument("--html", type=Path, help="write a page to look at")
    parser.add_argument("--json", type=Path, help="write all figures")
    parser.add_argument("--trace", type=Path, help="write a Chrome trace, for Perfetto")


def run(args: argparse.Namespace) -> str:
    """Simulate, write the files that were asked for, and return the summary.

    Raises InvalidMolecule, ValueError for unusable settings, TileMemoryError with `--strict`.
    """
    for path in (args.html, args.json, args.trace):
        if path and not path.absolute().parent.is_dir():
            raise ValueError(f"{path}: there is no folder {path.parent}; make it first")
    settings = Settings(
        basis=args.basis, xc=args.xc, grid_level=args.grid_level, max_cycles=args.max_cycles
    )
    enable_disk_cache()
    mol = Molecule.from_smiles(args.smiles, seed=args.seed)
    profile = profile_rks(mol, settings, args.target, args.num_ipus, args.strict)
    other = None
    if args.compare:
        name, num_ipus = _target_and_number(args.compare)
        other = profile_rks(mol, settings, name, num_ipus, args.strict)
    if args.json:
        profile.to_json(args.json)
    if args.html:
        profile.to_html(args.html, other)
    if args.trace:
        profile.to_trace(args.trace)
    return profile.summary() + (f"\n\n{diff(profile, other)}" if other else "")


def _target_and_number(text: str) -> tuple[str, int]:
    """ "bow:4" as ("bow", 4); raises ValueError if the number is none."""
    name, _, number = text.partition(":")
    if number and not number.isdecimal():
        raise ValueError(f"--compare {text}: give a target, or TARGET:IPUS, for example bow:4")
    return name, int(number or 1)


def profile_rks(
    mol: Molecule,
    settings: Settings | None = None,
    target_name: str = "bow",
    num_ipus: int = 1,
    strict: bool = False,
) -> Profile:
    """One SCF of a molecule on a simulated IPU, with its energy.

    Raises what `rks_core` and `simulate` raise.
    """
    chip = target(target_name)
    core, arguments = rks_core(mol, settings, lambda shape: machine_of(chip, num_ipus, shape))
    solution, profile = simulate(core, chip, num_ipus, strict)(*arguments)
    energy = float(np.sum([to_float64(t) for t in solution.terms]))
    converged = "converged" if bool(solution.converged) else "not converged"
    note = f"{mol.smiles or 'molecule'}: {int(solution.cycles)} SCF cycles, {converged}"
    return dataclasses.replace(profile, energy_hartree=energy, notes=(note, *profile.notes))
