"""Extended XYZ in the hands of MACE and NequIP: what their own loaders make of an export.

The run in --data is exported, and each program, in a Python of its own, reads the file with its
loader.  Keys are the defaults, but for MACE's --dipole_key REF_dipole and NequIP's exclude_keys
[dipole].  Energies, forces, dipole moments, charges and the energies of the free atoms must be
those of `qm1b.load`, and no frame may be lost.

    pip install mace-torch     # into a virtual environment; --mace its python
    pip install nequip         # likewise; --nequip
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import qm1b
from benchmarks import harness
from pyscf_ipu.base.units import BOHR_TO_ANGSTROM, E_BOHR_TO_DEBYE, HARTREE_TO_EV
from pyscf_ipu.elements.spellings import SYMBOLS

EV_PER_ANGSTROM = HARTREE_TO_EV / BOHR_TO_ANGSTROM
BOUNDS = {"energy": 1e-6, "forces": 1e-6, "dipole": 1e-6, "charges": 1e-12, "free atoms": 1e-6}
"""eV, eV/Angstrom, Debye, e, eV: what is left of the file's digits."""

MACE = """
import json, sys
from importlib import metadata
from mace.data import KeySpecification, load_from_xyz
keys = KeySpecification.from_defaults().update({"dipole": "REF_dipole"})  # --dipole_key
atoms, configs = load_from_xyz(sys.argv[1], keys, extract_atomic_energies=True)
names = ("energy", "forces", "dipole", "charges", "total_charge", "total_spin")
rows = [
    {"numbers": c.atomic_numbers.tolist(), "config_type": c.config_type}
    | {n: getattr(c.properties[n], "tolist", lambda v=c.properties[n]: v)() for n in names}
    for c in configs
]
atoms = {str(z): float(e) for z, e in atoms.items()}
print(json.dumps({"version": metadata.version("mace-torch"), "rows": rows, "atoms": atoms}))
"""

NEQUIP = """
import json, sys
from importlib import metadata
from nequip.data.dataset import ASEDataset
import torch
torch.set_default_dtype(torch.float64)
data = ASEDataset(file_path=sys.argv[1], exclude_keys=["dipole"])  # which it takes per atom
rows = [
    {
        "numbers": frame["atomic_numbers"].tolist(),
        "energy": float(frame["total_energy"]),
        "forces": frame["forces"].tolist(),
    }
    for frame in (data[i] for i in range(len(data)))
]
print(json.dumps({"version": metadata.version("nequip"), "rows": rows}))
"""


def main() -> int:
    made = harness.parser(__doc__, __file__)
    made.add_argument("--data", type=Path, required=True, help="a run of qm1b generate --forces")
    made.add_argument("--mace", help="the python of an environment with mace-torch")
    made.add_argument("--nequip", help="the python of an environment with nequip")
    args = made.parse_args()
    figures, missed = {}, []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.extxyz"
        qm1b.export(args.data, path)
        rows = [row for row in qm1b.load(args.data) if row["status"] == "converged"]
        for name, python, script in (("mace", args.mace, MACE), ("nequip", args.nequip, NEQUIP)):
            if python is None:
                continue
            figures[name] = compared(read(python, script, path), rows, args.data)
            print(f"{name} {figures[name]['version']}: {figures[name]['rows']} rows")
            errors = figures[name]["errors"]
            harness.table({"": k, "largest difference": v} for k, v in errors.items())
            missed += [f"{name}: {k} {v:.3g}" for k, v in errors.items() if not v <= BOUNDS[k]]
            missed += [f"{name}: {problem}" for problem in figures[name]["problems"]]
    return harness.finish(args.out, figures, missed)


def read(python: str, script: str, path: Path) -> dict:
    """What a program's loader makes of the file."""
    done = subprocess.run([python, "-c", script, path], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{python} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compared(found: dict, rows: list, data: Path) -> dict:
    """The largest differences between what was read and the rows of the run."""
    energies = qm1b.load(data).free_atom_energies
    theirs, problems = found["rows"], []
    if "atoms" not in found:  # a program that does not know the mark reads free atoms as frames
        free = [row for row in theirs if len(row["numbers"]) == 1]
        theirs = theirs[len(free) :]
        found["atoms"] = {str(row["numbers"][0]): row["energy"] for row in free}
    if [r["numbers"] for r in theirs] != [r["numbers"].tolist() for r in rows]:
        problems.append("other molecules, or in another order")
    expected = {
        "energy": [r["energy"] * HARTREE_TO_EV for r in rows],
        "forces": [r["forces"] * EV_PER_ANGSTROM for r in rows],
        "dipole": [r["dipole"] * E_BOHR_TO_DEBYE for r in rows],
        "charges": [r["mulliken_charges"] for r in rows],
    }
    errors = {
        name: max(
            float(np.abs(np.subtract(r[name], e)).max())
            for r, e in zip(theirs, values, strict=True)
        )
        for name, values in expected.items()
        if name in theirs[0]
    }
    atoms = {SYMBOLS[int(z)]: e for z, e in found["atoms"].items()}
    errors["free atoms"] = max(abs(e - energies[s] * HARTREE_TO_EV) for s, e in atoms.items())
    if set(atoms) != {SYMBOLS[z] for r in rows for z in r["numbers"].tolist()}:
        problems.append(f"free atoms of {', '.join(atoms)}")
    for name, value in {"total_charge": 0, "total_spin": 1, "config_type": "Default"}.items():
        if any(row.get(name, value) != value for row in theirs):
            problems.append(f"{name} is not {value} in every row")
    return {
        "version": found["version"],
        "rows": len(theirs),
        "free atoms": sorted(atoms),
        "errors": errors,
        "problems": problems,
    }


if __name__ == "__main__":
    sys.exit(main())
