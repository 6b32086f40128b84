"""The conformers that the figures share: one run of `qm1b generate`, a part of it audited."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import qm1b
from paper.drawing import Job
from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.commands.generate import SAMPLE
from qm1b.settings import COARSE, PRESETS, RunSettings

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
"""Only in a checkout; the figures of the notebook need nothing from there."""

MOLECULES, CONFORMERS = {True: 120, False: 300}, {True: 12, False: 300}
AUDIT = {True: 0.06, False: 0.01}
"""By whether it is the quick form. The full form has 90,000 rows at most: an hour and a half."""

PADDING = {True: COARSE, False: None}
"""The quick form saves programs, which take longer there than its rows."""

MOLECULES_OF_NINE, CONFORMERS_OF_NINE = {True: 24, False: 100}, {True: 3, False: 100}


@dataclass(frozen=True)
class Rows:
    """Columns of the converged rows, in the order of the run."""

    folder: Path

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """Energies in eV, and the counts that figures need."""
        found: dict[str, list[object]] = {}
        for row in qm1b.load(self.folder):
            if row["status"] != "converged":
                continue
            numbers = np.asarray(row["numbers"])
            values = {
                "smiles": row["smiles"],
                "atoms": len(numbers),
                "heavy": int((numbers > 1).sum()),
                "hydrogens": int((numbers == 1).sum()),
                "aos": row["n_ao"],
                "energy": row["energy"],
                "homo": row["homo"],
                "lumo": row["lumo"],
                "gap": row["lumo"] - row["homo"],
                "reference_energy": row["reference_energy"],
                "reference_homo": row["reference_homo"],
                "reference_lumo": row["reference_lumo"],
                "positions": np.asarray(row["positions"]),
                "numbers": numbers,
            }
            for name, value in values.items():
                found.setdefault(name, []).append(value)
        in_hartree = ("energy", "homo", "lumo", "gap")
        in_hartree += tuple(f"reference_{name}" for name in in_hartree[:3])
        made = {name: _column(values) for name, values in found.items()}
        return {k: v * HARTREE_TO_EV if k in in_hartree else v for k, v in made.items()}

    @property
    def audited(self) -> np.ndarray:
        """[R] Which rows PySCF has recomputed."""
        return np.isfinite(self.columns["reference_energy"])

    def errors_mev(self) -> dict[str, np.ndarray]:
        """Ours minus PySCF's in meV of the audited rows, by quantity."""
        c, known = self.columns, self.audited
        found = {
            name: 1e3 * (c[name] - c[f"reference_{name}"])[known]
            for name in ("energy", "homo", "lumo")
        }
        return found | {"gap": found["lumo"] - found["homo"]}


def rows(job: Job) -> Rows:
    """The rows, which are computed if they are not there; a stopped run resumes."""
    settings = RunSettings(
        PRESETS["qm1b"],
        job.each or CONFORMERS[job.quick],
        limit=job.molecules or MOLECULES[job.quick],
        input_format="smiles",
        audit=AUDIT[job.quick],
        padding=PADDING[job.quick],
    )
    return computed(SAMPLE, job.data, settings)


def nine_heavy(job: Job) -> Rows:
    """Rows of molecules with nine heavy atoms, which the others do not have."""
    settings = RunSettings(
        PRESETS["qm1b"],
        CONFORMERS_OF_NINE[job.quick],
        limit=MOLECULES_OF_NINE[job.quick],
        input_format="smiles",
        padding=PADDING[job.quick],
    )
    folder = job.data.with_name(f"{job.data.name}-nine")
    return computed(BENCHMARKS / "data" / "qm9_9heavy_100.smi", folder, settings)


def computed(source: Path, folder: Path, settings: RunSettings) -> Rows:
    """The rows of a run, which is begun or resumed if it is not complete."""
    from qm1b.run.generate import Run, generate

    folder.parent.mkdir(parents=True, exist_ok=True)
    if generate(Run(source, folder, settings)).interrupted:
        raise KeyboardInterrupt
    return Rows(folder)


def _column(values: list[object]) -> np.ndarray:
    if isinstance(values[0], np.ndarray | str):
        column = np.empty(len(values), object)
        column[:] = values
        return column
    return np.array(values, np.float64)
