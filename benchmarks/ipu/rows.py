"""What a row on the simulated IPU takes, over one of the portable program without codelets.

Both are warm, on one core, in processes that take turns; conformers of one molecule of nine heavy
atoms at QM1B's level.  With --vertices the integrals are computed by the vertices, too.  With
--errors: how far the energies of 200 conformers of ten molecules are from PySCF's, instead.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import qm1b
from benchmarks import harness
from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.run.generate import Run, generate
from qm1b.settings import PRESETS, RunSettings

SMILES = "OC1CCC(C=O)CC1"
CONFORMERS, TURNS, MOST = 8, 3, 3.0
TEN, TWENTY, BOUND_MEV = "CCO CC=O CCN C1CC1 CC#N COC NC=O CCC C=CC OCO".split(), 20, 0.3

CHILD = """
import json, sys, time
import pyscf_ipu as pi
pi.enable_disk_cache()
smiles, count, machine, vertices = json.loads(sys.argv[1])
mols = [pi.Molecule.from_smiles(smiles, seed=k) for k in range(count)]
made = pi.ipu.machine(machine, vertices) if machine else None
solver = pi.Solver(pi.Settings.preset("qm1b"), made)
begin = time.perf_counter()
pi.rks(mols[:1], solver=solver, workers=1)
first = time.perf_counter() - begin
begin = time.perf_counter()
pi.rks(mols, solver=solver, workers=1)
print(json.dumps([first, (time.perf_counter() - begin) / count]))
"""


def main() -> int:
    parser = harness.parser(__doc__, __file__)
    parser.add_argument("--smiles", default=SMILES)
    parser.add_argument("--vertices", action="store_true")
    parser.add_argument("--errors", action="store_true")
    args = parser.parse_args()
    if args.errors:
        return errors(args.out)
    seconds: dict[str, list[float]] = {"portable": [], "bow": []}
    first: dict[str, float] = {}
    for _ in range(TURNS):
        for name, machine, switch in (("portable", None, "off"), ("bow", "bow", "on")):
            task = json.dumps([args.smiles, CONFORMERS, machine, args.vertices])
            child = subprocess.run(
                [sys.executable, "-c", "import pyscf_ipu.ipu\n" + CHILD, task],
                env=os.environ | {"PYSCF_IPU_CODELETS": switch},
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            begun, each = json.loads(child.stdout)
            first.setdefault(name, begun)
            seconds[name].append(each)
    rows = {name: statistics.median(times) for name, times in seconds.items()}
    ratio = rows["bow"] / rows["portable"]
    for name, each in rows.items():
        print(f"{name:9} {1e3 * each:7.1f} ms a row, first call {first[name]:.1f} s")
    print(f"ratio     {ratio:7.2f}, at most {MOST}")
    figures = {"smiles": args.smiles, "vertices": args.vertices, "rows_s": rows, "first_s": first}
    missed = [f"a row takes {ratio:.2f} times as long"] if ratio > MOST else []
    return harness.finish(args.out, figures | {"ratio": ratio}, missed)


def errors(out: Path) -> int:
    """Energies of a run whose rows are all audited."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "ten.smi"
        source.write_text("\n".join(TEN) + "\n")
        how = RunSettings(PRESETS["qm1b"], TWENTY, audit=1.0, padding="coarse", machine="bow")
        generate(Run(source, Path(folder) / "out", how))
        rows = [*qm1b.load(Path(folder) / "out")]
    differences = [abs(r["energy"] - r["reference_energy"]) for r in rows]
    mev = [1e3 * HARTREE_TO_EV * difference for difference in differences]
    mean, largest = statistics.fmean(mev), max(mev)
    print(f"{len(rows)} rows: mean {mean:.2f} meV from PySCF, largest {largest:.2f} meV")
    missed = [f"the mean is {mean:.2f} meV"] if mean > BOUND_MEV else []
    return harness.finish(
        out, {"rows": len(rows), "mean_mev": mean, "largest_mev": largest}, missed
    )


if __name__ == "__main__":
    sys.exit(main())
