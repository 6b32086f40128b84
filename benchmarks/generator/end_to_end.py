"""`qm1b generate` against the loop that a PySCF user would write: SMILES in, file out.

Ours is the command as users run it, start-up, conformers, writing and all, on a warm cache of
programs, and so with the padding of long runs; the first run, with an empty cache, has no target.
The loop embeds with RDKit, runs PySCF in one single-threaded process per core, and writes one HDF5
file.  For a quick look: --molecules 4 --conformers 2 --rounds 1.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import h5py

from benchmarks import harness, molecules
from benchmarks.pool import SINGLE, Pool, cores
from benchmarks.reference import build, frontier
from pyscf_ipu import Molecule, Settings
from qm1b.folder import shards
from qm1b.rows.schema import CONVERGED

TARGET = 13.0
QM1B = Path(sys.executable).parent / "qm1b"


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--molecules", type=int, default=12, help="of 9 heavy atoms")
    parser.add_argument("--conformers", type=int, default=10, help="of each, for our side")
    parser.add_argument("--loop-conformers", type=int, default=2, help="of each, for the loop")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    smiles = molecules.smiles_of(molecules.QM9, args.molecules)
    with tempfile.TemporaryDirectory() as scratch, Pool() as pool:
        source = Path(scratch) / "input.smi"
        source.write_text("\n".join(smiles) + "\n")

        def fresh() -> Path:
            return Path(tempfile.mkdtemp(dir=scratch)) / "out"

        sides = {
            "qm1b generate": lambda: generate(source, fresh(), args.conformers),
            "PySCF loop": lambda: loop(pool, smiles, args.loop_conformers, fresh()),
        }
        first = sides["qm1b generate"]()  # compiles
        loop(pool, smiles[:2], 1, fresh())  # loads libraries; not timed
        rates = harness.in_turn(sides, args.rounds)
    for name, found in rates.items():
        print(f"{name:14} {median(found):.2f} conformers/s")
    print(f"with an empty cache {first:.2f} conformers/s")
    ratio = median(rates["qm1b generate"]) / median(rates["PySCF loop"])
    print(f"{ratio:.1f} times as fast (target {TARGET:.0f}), {len(cores())} cores")
    missed = [] if ratio >= TARGET else [f"{ratio:.1f} of {TARGET:.0f} times as fast"]
    return harness.finish(args.out, {"rates": rates, "empty_cache": first, "ratio": ratio}, missed)


def generate(source: Path, out: Path, conformers: int) -> float:
    """Run the command; conformers/s of its whole life."""
    flags = ["--conformers", str(conformers), "--padding", "fine"]
    command = [QM1B, "generate", source, "--out", out, *flags]
    environment = {**os.environ, "PYSCF_IPU_CACHE": str(source.parent / "programs")}
    for name in SINGLE:  # the pool's; the command decides for itself
        environment.pop(name, None)
    seconds, _ = harness.timed(
        lambda: subprocess.run(command, check=True, capture_output=True, env=environment)
    )
    status = [s for shard in shards.shards(out) for s in shards.read_shard(shard)["status"]]
    if set(status) != {CONVERGED}:
        raise SystemExit(f"not all rows converged: {set(status)}")
    return len(status) / seconds


def loop(pool: Pool, smiles: list[str], conformers: int, out: Path) -> float:
    """The obvious script, a process per core; conformers/s."""
    tasks = [(text, seed) for text in smiles for seed in range(conformers)]

    def write() -> None:
        with h5py.File(out, "w") as file:
            for i, (energy, homo, lumo) in pool.each(one, tasks):
                group = file.create_group(f"{tasks[i][0].replace('/', '|')} {tasks[i][1]}")
                group["energy"], group["homo"], group["lumo"] = energy, homo, lumo

    return len(tasks) / harness.timed(write)[0]


def one(smiles: str, seed: int) -> tuple[float, float, float]:
    """In a worker: embed one conformer and compute its energy, HOMO and LUMO."""
    mol = Molecule.from_smiles(smiles, seed=seed)
    level = Settings(xc="b3lyp5", grid_level=0)
    return frontier(build(mol, level), mol.n_occupied(level.basis))


if __name__ == "__main__":
    sys.exit(main())
