"""What a row on the simulated IPU takes, over one of the portable program without codelets.

Both are warm, on one core, in processes that take turns; conformers of one molecule of nine heavy
atoms at QM1B's level.  With --vertices the integrals are computed by the vertices, too.
"""

import json
import os
import statistics
import subprocess
import sys

from benchmarks import harness

SMILES = "OC1CCC(C=O)CC1"
CONFORMERS, TURNS, MOST = 8, 3, 3.0

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
    args = parser.parse_args()
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


if __name__ == "__main__":
    sys.exit(main())
