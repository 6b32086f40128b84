"""Execute the notebooks as a first reader would: a fresh kernel, nothing compiled, no checkout.

They run in a copy of this folder that lies alone in an empty one, with the packages installed. Nor
is there a network: Python refuses connections to other computers (offline/sitecustomize.py).

    notebooks/run.py                           # all of them: what .ci/run does
    notebooks/run.py --write SchNet-training   # one, and keep its outputs in the .ipynb

A notebook is a pair: the .py is written by hand and is what runs, the .ipynb is the same text with
outputs.  Exits with 1 if a cell fails, warns, takes too long, or prints something else than the
.ipynb shows (checks/printed.py says how outputs are compared).  That pairs agree is a test's
business (tests/test_notebooks.py).
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from checks.printed import difference

HERE = Path(__file__).parent
LIMIT_SECONDS = 300
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",  # XLA's remarks about programs from a cache
    "PYTHONWARNINGS": "error::DeprecationWarning:__main__",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="notebooks without ending; default: all")
    parser.add_argument("--write", action="store_true", help="keep the outputs in the .ipynb")
    parser.add_argument("--limit-seconds", type=float, default=LIMIT_SECONDS, help="of each")
    parser.add_argument("--programs", type=Path, help="folder of compiled programs to start from")
    args = parser.parse_args()
    known = sorted(path.stem for path in HERE.glob("*.py") if path != Path(__file__))
    if unknown := sorted(set(args.names) - set(known)):
        parser.error(f"no notebook {', '.join(unknown)}: there are {', '.join(known)}")
    faults = []
    for name in args.names or known:
        found = execute(name, args.limit_seconds, args.write, args.programs)
        faults += [f"{name}: {fault}" for fault in found]
    for fault in faults:
        print(f"FAILED {fault}", file=sys.stderr)
    return 1 if faults else 0


def execute(name: str, limit_seconds: float, write: bool, programs: Path | None) -> list[str]:
    """Run a notebook and print its times; returns what went wrong, in words."""
    notebook = jupytext.read(HERE / f"{name}.py")
    start, cpu = time.monotonic(), children_cpu_seconds()

    def seconds_left(cell: NotebookNode) -> int:
        return max(1, int(start + limit_seconds - time.monotonic()))

    faults = []
    with tempfile.TemporaryDirectory() as folder:
        # Symbolic links stay: one that leads elsewhere leads nowhere in the copy.
        copy = shutil.copytree(HERE, Path(folder) / HERE.name, symlinks=True)
        environment = os.environ | ENVIRONMENT | offline()
        environment["PYSCF_IPU_CACHE"] = str(programs or f"{folder}/programs")
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            timeout_func=seconds_left,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": str(copy)}},
        )
        try:
            client.execute(env=environment)
        except CellTimeoutError:
            faults.append(f"not done after {limit_seconds:.0f} s")
        except (CellExecutionError, DeadKernelError) as error:
            faults.append(str(error))
    wall, cpu = time.monotonic() - start, children_cpu_seconds() - cpu
    print(f"{name}: {wall:.0f} s, {cpu:.0f} CPU seconds", flush=True)
    faults += output_faults(notebook)
    if write and not faults:
        write_pair(name, notebook)
    elif not faults:
        faults += stale_outputs(notebook, jupytext.read(HERE / f"{name}.ipynb"))
    return faults


def offline() -> dict[str, str]:
    """The environment of a Python that finds no network, nor do the Pythons that it starts."""
    paths = [str(HERE / "offline"), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def write_pair(name: str, notebook: NotebookNode) -> None:
    """The .ipynb with outputs; what would change with every run is left out."""
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata.pop("execution", None)
    jupytext.write(notebook, HERE / f"{name}.ipynb", fmt="ipynb")


def output_faults(notebook: NotebookNode) -> list[str]:
    """Outputs that a reader should not see."""
    faults = []
    for number, cell in enumerate(notebook.cells):
        texts = [
            out.get("text", "") for out in cell.get("outputs", ()) if out.get("name") == "stderr"
        ]
        if texts:
            faults.append(f"cell {number} writes to stderr: {texts[0][:200]}")
    return faults


def stale_outputs(notebook: NotebookNode, committed: NotebookNode) -> list[str]:
    """Cells that print something else than the committed notebook shows."""
    faults = []
    for number, (now, then) in enumerate(zip(notebook.cells, committed.cells, strict=False)):
        if fault := difference(printed(then), printed(now), loose=True):
            faults.append(f"cell {number} (keep new outputs with --write):\n{fault}")
    return faults


def printed(cell: NotebookNode) -> str:
    """The text of a cell's outputs."""
    outputs = cell.get("outputs", ())  # a stream may come in pieces
    return "".join(o.get("text") or f"{o.get('data', {}).get('text/plain', '')}\n" for o in outputs)


def children_cpu_seconds() -> float:
    """Of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
