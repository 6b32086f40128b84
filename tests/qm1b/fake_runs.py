"""Runs of the fake engine, and their inputs."""

import json
import subprocess
import sys
from contextlib import nullcontext
from unittest.mock import patch

import h5py
import numpy as np
from threads import Threads

from qm1b.folder import checksum, shards
from qm1b.process import worker
from qm1b.rows.schema import Conformer, Drop, Row
from qm1b.run.generate import Run, generate
from qm1b.settings import PRESETS, RunSettings

LINES = "O\nC\nCC\n[He]\n[Ne]\nCCl\nC[C\n\n[CH3]\nO\n[Na+].[Cl-]\nCCO\t12\t1\n" + "C" * 60 + "\nP"

CALM = LINES.replace("[He]", "[Ar]")
"""These lines, but nothing kills a process: a new one costs seconds."""

MANY = CALM + "\n" + "\n".join("C" * n + "O" * m for n in range(1, 9) for m in range(3)) + "\nCC\n"
"""39 lines, ten units; several lines are duplicates of lines in other units."""


HOW = ("share", "other_versions", "retry_dropped", "deadline")
"""Fields of `Run` that a test may change."""


def settings(**changes):
    values = {"conformers": 2, "seed": 1, "max_aos": 128, "embed_timeout": 20.0, "unit_rows": 8}
    return RunSettings(**({"level": PRESETS["qm1b"]} | values | changes))


def recipe(count, timeout=0.0, **changes):
    """Settings that make conformers, without a time limit unless one is given."""
    return settings(conformers=count, embed_timeout=timeout, **{"seed": 0, **changes})


FAKE = "fake_engine:Solver"


def fake_run(folder, text=CALM, workers=2, factory=FAKE, processes=False, **changes):
    """Fields of `Run` and of `RunSettings` may be changed.

    Its workers are threads, unless processes are asked for or something may happen to them.
    """
    calm = factory == FAKE and "[He]" not in text
    source = folder / "input.smi"
    source.write_text(text)
    out = folder / f"out-{workers}"
    how = {name: changes.pop(name) for name in HOW if name in changes}
    run = Run(source, out, settings(**changes), workers, factory, **how)
    with patch.object(worker, "_CONTEXT", Threads) if calm and not processes else nullcontext():
        return out, generate(run)


def conformer(line=1, numbers=(2,), positions=None, **changes):
    """One of an input line: a helium atom, unless other atoms are given."""
    atoms = np.array(numbers, np.uint8)
    positions = np.zeros((len(atoms), 3)) if positions is None else np.asarray(positions)
    values = {"smiles": "[He]", "conformer": 0, "seed": 1, "charge": 0} | changes
    return Conformer(line=line, numbers=atoms, positions=positions, **values)


def row(of, status="converged", **values):
    """A row of a conformer."""
    return Row(conformer=of, status=status, **{"n_ao": 1, **values})


def drop_again(path, line, reason, keep=0):
    """Make a shard say that a line was dropped, except for its first `keep` conformers."""
    unit, attributes = shards.read_unit(path), shards.read_attributes(path)
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in attributes.items()}
    smiles = next(r.conformer.smiles for r in unit.rows if r.conformer.line == line)
    unit.rows = [r for r in unit.rows if r.conformer.line != line or r.conformer.conformer < keep]
    unit.drops.append(Drop(line, smiles, reason, "of an older version"))
    unit.sort()
    shards.write_shard(path.parent, unit.index, unit.rows, unit.drops, plain)


def flip(path, position):
    """One bit of a file, changed."""
    data = bytearray(path.read_bytes())
    data[position] ^= 4
    path.write_bytes(data)


def frames(folder, **changes):
    """A run on frames without SMILES: twelve molecules in a row, and then again."""
    text = ""
    for stretch in (0.0, 0.05):
        for carbons in range(1, 13):
            xs = [1.3 * k for k in range(carbons)]
            atoms = "".join(f"C {x} 0 0\nH {x} {1 + stretch} 0\nH {x} -1 0\n" for x in xs)
            text += f"{3 * carbons}\nframe\n{atoms}"
    source = folder / "a.xyz"
    source.write_text(text)
    out = folder / "out"
    generate(Run(source, out, settings(conformers=1, **changes), 1, "fake_engine:Solver"))
    return out


FREE_ATOMS = {"H": -0.25, "C": -1.5, "N": -1.75, "O": -2.0, "Cl": -4.25}
"""Hartree, by symbol."""


def give_free_atoms(folder, energies=FREE_ATOMS):
    """Put energies of free atoms into a run's manifest, and no others into its rows, so that rows
    take these; returns the folder."""
    path = folder / shards.MANIFEST
    values = json.loads(path.read_text()) | {"free_atom_energies_hartree": energies}
    path.write_text(json.dumps(values))
    for path in shards.shards(folder):
        seal_again(
            path,
            lambda file: file["rows/atomisation_energy"].write_direct(
                np.full(len(file["rows/line"]), np.nan)
            ),
        )
    return folder


def seal_again(path, change):
    """Change an open shard, and give it a checksum that is right."""
    path.write_bytes(path.read_bytes()[checksum.BLOCK :])
    with h5py.File(path, "r+") as file:
        change(file)
    path.write_bytes(checksum.sealed(b"\0" * checksum.BLOCK + path.read_bytes()))


def command(*arguments, **options):
    """The command `qm1b` in a process of its own."""
    line = [sys.executable, "-m", "qm1b.cli", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=600, **options)
