"""The commands that write files, each with what it is given in the folder of a trial."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.harness import ROOT

QM9 = str(ROOT / "tests" / "schnet" / "data" / "qm9_60.extxyz.gz")
SMALL_NET = "--width 8 --filters 8 --interactions 1 --gaussians 8 --pack-molecules 8"
TRAIN = f"train --data {QM9} --split 40,10,10 {SMALL_NET} --max-epochs 2 --quiet --out"
GENERATE = "generate input.smi --conformers 2 --workers 1 --forces --out"


OLD = ("input.smi=x.json", "input.smi=x.molden", "input.smi=x.html")
"""Files of another content, which are replaced."""


@dataclass(frozen=True)
class Case:
    """A command in a folder of its own."""

    name: str
    words: str
    """The command line; the first word is the console script."""
    needs: tuple[str, ...] = ()
    """What is copied into the folder before, of FIXTURES; NAME=OTHER gives it another name."""
    stdin: str | None = None
    """File whose content comes in on standard input."""
    processes: bool = False
    """Workers of `qm1b generate` are processes, not threads."""
    env: Mapping[str, str] = field(default_factory=dict)
    slow: bool = False
    """Half a minute until its first trial: a sample leaves it out."""
    renews: bool = False
    """Earlier files go before the first new one comes, since they must not be mixed."""
    refuses: bool = False
    """The same command refuses an output that is whole."""

    @property
    def arguments(self) -> list[str]:
        """The words after the console script."""
        return self.words.split()[1:]

    @property
    def script(self) -> str:
        """The console script."""
        return self.words.split()[0]


def _qm1b(name: str, words: str, *needs: str, **more: object) -> Case:
    return Case(f"qm1b {name}", f"qm1b {words}", needs, **more)  # type: ignore[arg-type]


def _exports() -> list[Case]:
    found = [
        _qm1b(f"export {end}", f"export run x.{end}", "run")
        for end in ("parquet", "extxyz", "extxyz.gz", "aselmdb", "db")
    ]
    found += [
        _qm1b(f"export --format {kind}", f"export run x.h5 --format {kind}", "run")
        for kind in ("ace", "spice")
    ]
    found += [
        _qm1b("export --all", "export run x.parquet --all", "run"),
        _qm1b("export --all extxyz.gz", "export run x.extxyz.gz --all", "run"),
        _qm1b("export over", "export run x.parquet", "run", "older.parquet=x.parquet"),
        _qm1b("export hub", "export run x --format hub", "run", refuses=True),
        _qm1b("export --parts", "export run x --parts 2 --valid-rows 4", "run", refuses=True),
    ]  # fmt: skip
    kinds = ("parquet", "extxyz", "extxyz.gz", "aselmdb", "schnetpack", "ace", "spice")
    found += [_qm1b(f"split {kind}", f"split run --out x --format {kind}", "run") for kind in kinds]
    return [
        *found,
        _qm1b("split hub", "split run --out x --format hub", "run", refuses=True),
        _qm1b("split again", "split run --out x --seed 1", "run", "split=x", renews=True),
    ]


def _datasets() -> list[Case]:
    return [
        _qm1b("generate", f"{GENERATE} out", "input.smi", processes=True),
        _qm1b("generate --trace", f"{GENERATE} out --trace out.trace.json", "input.smi"),
        _qm1b("generate, resumed", f"{GENERATE} out", "input.smi", "half=out"),
        _qm1b("generate --retry-dropped", f"{GENERATE} out --retry-dropped embed_crash",
              "input.smi", "dropped=out"),
        _qm1b("generate --shard", f"{GENERATE} out --shard 0/2", "input.smi"),
        _qm1b("generate -", "generate - --conformers 2 --workers 1 --forces --out out",
              stdin="input.smi"),
        _qm1b("merge", "merge parts/part-0-of-2 parts/part-1-of-2 --out out", "parts"),
        _qm1b("import", "import all.parquet --out out", "all.parquet",
              "all.parquet.dropped.csv", refuses=True),
        _qm1b("import extxyz.gz", "import all.extxyz.gz --out out", "all.extxyz.gz",
              "all.extxyz.gz.dropped.csv", "all.extxyz.gz.manifest.json", refuses=True),
        _qm1b("select", "select input.smi --out x.smi --heavy 1-3", "input.smi"),
        _qm1b("stats --plots", "stats run --plots x --json x.json", "run"),
        _qm1b("verify", "verify run --sample 1 --workers 1", "run"),
        _qm1b("card", "card run", "run"),
        _qm1b("card --parquet", "card run --out x --parquet all.parquet", "run", "all.parquet"),
        _qm1b("plan --ipu", "plan one.smi --ipu bow --molecules 9 --json x.json", "one.smi",
              slow=True),
    ]  # fmt: skip


def _networks() -> list[Case]:
    def schnet(name: str, words: str, *needs: str, **more: object) -> Case:
        return Case(f"schnet {name}", f"schnet {words}", needs, **more)  # type: ignore[arg-type]

    return [
        schnet("train", f"{TRAIN} net"),
        schnet("train, resumed", f"{TRAIN} net", "half-trained=net"),
        schnet("predict", f"predict net {QM9} --out x.csv", "net"),
        schnet("evaluate", "evaluate net", "net"),
        schnet("export --pyg", "export net --pyg x.npz", "net"),
        schnet("export --onnx", "export net --onnx x.onnx", "net"),
        schnet("import-pyg", "import-pyg pyg.npz --out x --target gap --unit ev", "pyg.npz",
               refuses=True),
        schnet("price", "price --preset small --json x.json --html x.html"),
    ]  # fmt: skip


def _molecules() -> list[Case]:
    def single(name: str, words: str, **more: object) -> Case:
        return Case(f"pyscf-ipu {name}", f"pyscf-ipu {words}", **more)  # type: ignore[arg-type]

    return [
        single("rks", "rks [He] --molden x.molden --json x.json", needs=OLD),
        single("rks, first", "rks [He]", env={"PYSCF_IPU_CACHE": "cache"}),
        single("optimize", "optimize [H][H] --xyz x.xyz --molden x.molden --json x.json",
               slow=True),
        single("frequencies", "frequencies [H][H] --json x.json", slow=True),
        single("profile", "profile --smiles [He] --html x.html --json x.json --trace x.trace",
               needs=OLD, slow=True),
    ]  # fmt: skip


CASES = {case.name: case for case in [*_datasets(), *_exports(), *_networks(), *_molecules()]}

FIXTURES = {
    "run": ["qm1b " + GENERATE + " run"],
    "parts": ["qm1b " + GENERATE + " parts --shard 0/2", "qm1b " + GENERATE + " parts --shard 1/2"],
    "all.parquet": ["qm1b export run all.parquet --all"],
    "all.extxyz.gz": ["qm1b export run all.extxyz.gz --all"],
    "older.parquet": ["qm1b export parts/part-0-of-2 older.parquet"],
    "split": ["qm1b split run --out split"],
    "net": [f"schnet {TRAIN} net"],
    "pyg.npz": ["schnet export net --pyg pyg.npz"],
}
"""Commands that make what the others are given, in this order."""


def input_text() -> str:
    """Fifteen lines in four units: molecules, duplicates, and lines to be dropped."""
    return "O\nC\nCC\nCCl\nC[C\n\n[CH3]\nO\n[Na+].[Cl-]\nCCO\t12\t1\nCO\nCCC\nCOC\nCCO\nN\n"


def folder_names(case: Case) -> list[tuple[str, str]]:
    """What is copied into the folder of a trial: the fixture, and its name there."""
    return [(one.split("=")[0], one.split("=")[-1]) for one in case.needs]
