"""Execute the notebooks as a first reader would: a fresh kernel, an empty folder, nothing cached.

    notebooks/run.py                           # all of them: what .ci/run does
    notebooks/run.py --write SchNet-training   # one, and keep its outputs in the .ipynb

A notebook is a pair: the .py is written by hand and is what runs, the .ipynb is the same text with
outputs.  Without --write the pair is compared and the committed outputs are looked over.  Exits
with 1 if anything is wrong.
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
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode

HERE = Path(__file__).parent
LIMIT_SECONDS = 180
MAX_BYTES = 600_000
"""Of an .ipynb: it lies in the repository's history for ever."""

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
        found = [] if args.write else committed_faults(name)
        found += execute(name, args.limit_seconds, args.write, args.programs)
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
        shutil.copytree(HERE / "data", Path(folder) / "data")
        environment = (
            os.environ | ENVIRONMENT | {"PYSCF_IPU_CACHE": str(programs or f"{folder}/programs")}
        )
        client = NotebookClient(
            notebook,
            kernel_name="python3",
            timeout_func=seconds_left,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute(env=environment)
        except CellTimeoutError:
            faults.append(f"not done after {limit_seconds:.0f} s")
        except CellExecutionError as error:
            faults.append(str(error))
    wall, cpu = time.monotonic() - start, children_cpu_seconds() - cpu
    print(f"{name}: {wall:.0f} s, {cpu:.0f} CPU seconds", flush=True)
    faults += output_faults(notebook)
    if write and not faults:
        write_pair(name, notebook)
        faults += committed_faults(name)
    return faults


def write_pair(name: str, notebook: NotebookNode) -> None:
    """The .ipynb with outputs; what would change with every run is left out."""
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata.pop("execution", None)
    jupytext.write(notebook, HERE / f"{name}.ipynb", fmt="ipynb")


def committed_faults(name: str) -> list[str]:
    """What is wrong with the .ipynb beside a .py."""
    path = HERE / f"{name}.ipynb"
    if not path.exists():
        return [f"{path.name} is missing: run {Path(__file__).name} --write {name}"]
    notebook = nbformat.read(path, as_version=4)
    source = jupytext.read(HERE / f"{name}.py")
    faults = output_faults(notebook)
    if [text_of(cell) for cell in notebook.cells] != [text_of(cell) for cell in source.cells]:
        faults.append(f"{path.name} is not its .py: run {Path(__file__).name} --write {name}")
    if not all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code"):
        faults.append(f"{path.name} has cells that were not executed")
    if path.stat().st_size > MAX_BYTES:
        faults.append(f"{path.name} has {path.stat().st_size} bytes; {MAX_BYTES} are allowed")
    return faults


def output_faults(notebook: NotebookNode) -> list[str]:
    """Outputs that a reader should not see, and views that are blank where scripts do not run."""
    faults = []
    for number, cell in enumerate(notebook.cells):
        kinds = [kind for out in cell.get("outputs", ()) for kind in out.get("data", {})]
        texts = [
            out.get("text", "") for out in cell.get("outputs", ()) if out.get("name") == "stderr"
        ]
        if texts:
            faults.append(f"cell {number} writes to stderr: {texts[0][:200]}")
        if "py3Dmol" in cell.source and "text/html" in kinds and "image/png" not in kinds:
            faults.append(f"cell {number} has a 3-D view without a picture beside it")
    return faults


def text_of(cell: NotebookNode) -> tuple[str, str]:
    return cell.cell_type, cell.source.strip()


def children_cpu_seconds() -> float:
    """Of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
