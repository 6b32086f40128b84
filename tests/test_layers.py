"""The order of the rooms: an import goes down, a folder stays small, a name means one thing.

ORDER lists the rooms of each package from the ground up.  A new room is a new line here, and the
place of that line says what the room may import: every room on a lower line, and no other.  The
limits stand in limits.json, and may only fall.
"""

import json
import shutil
import subprocess
from collections import Counter
from itertools import pairwise

import house
import pytest
from house import LIMIT, LIMITS

ORDER = {
    "pyscf_ipu": [
        "base",
        "numerics",
        "xc",
        "codelets",
        "tiles",
        "elements",
        "scf",
        "settings",
        "molecule",
        "nanodft",
        "shapes",
        "integrals",
        "fitting",
        "grid",
        "machines",
        "kohn_sham",
        "gradient",
        "results",
        "solver",
        "ipu",
        "api",
        "__init__",
        "interop",
        "commands",
    ],
    "qm1b": [
        "errors",
        "storage",
        "process",
        "rows",
        "settings",
        "reference",
        "inputs",
        "screening",
        "conformers",
        "engine",
        "folder",
        "formats",
        "run",
        "report",
        "audit",
        "convert",
        "commands",
        "__init__",
        "cli",
    ],
    "schnet": [
        "errors",
        "samples",
        "sources",
        "network",
        "runs",
        "training",
        "commands",
        "__init__",
        "cli",
    ],
}
ACROSS = {("qm1b", "pyscf_ipu"), ("schnet", "qm1b"), ("schnet", "pyscf_ipu")}
"""Package -> packages that it may import."""

GENERIC = ("profile", "chip", "vertices", "steps", "pricing", "findings", "report", "simulate")
"""The parts of the simulated IPU that price any program."""
OF_THE_ENGINE = {
    "pyscf_ipu.codelets.call",
    "pyscf_ipu.numerics.arrays",
    "pyscf_ipu.numerics.boys",
    "pyscf_ipu.tiles",
    "pyscf_ipu.tiles.array",
    "pyscf_ipu.tiles.primitive",
}
"""All that they may import of it, besides `base`."""

MIRRORS = {
    # The gradient of an integral lies in a file of the integral's name.
    "electron_repulsion": {"pyscf_ipu.integrals", "pyscf_ipu.gradient"},
    "one_electron": {"pyscf_ipu.integrals", "pyscf_ipu.gradient"},
    "program": {"pyscf_ipu.kohn_sham", "pyscf_ipu.gradient"},
    # A command of a part of the package.
    "command": {"pyscf_ipu.ipu.engine", "pyscf_ipu.nanodft"},
    # A subcommand, and what it runs.
    "generate": {"qm1b.commands", "qm1b.run"},
    # A process with a pipe, and what it does for the engine.
    "worker": {"qm1b.process", "qm1b.engine"},
}
"""Module names that stand twice in a package on purpose."""

packages = pytest.mark.parametrize("package", house.PACKAGES)


@packages
def test_every_import_goes_down(package):
    """Imports inside functions and under TYPE_CHECKING count; the package's own face does not."""
    order = {room: i for i, room in enumerate(ORDER[package])}
    for room, below in house.arrows(package).items():
        if room == "__init__":
            continue  # the public names, each imported when it is asked for
        for target, places in below.items():
            assert order[target] < order[room], places


@packages
def test_the_list_of_rooms_is_complete(package):
    assert {house.room_of(name) for name in house.files(package)} <= set(ORDER[package])


@packages
def test_no_file_imports_itself_by_way_of_others(package):
    graph = {
        name: [t for t, _ in house.imported(name)]
        for name in house.files(package)
        if name != package
    }
    assert house.circles(graph) == []


@packages
def test_packages_stand_on_each_other(package):
    for name in house.files(package):
        for target, line in house.imported(name):
            across = (package, target.split(".")[0])
            assert across[0] == across[1] or across in ACROSS, f"{name}:{line} imports {target}"


@packages
def test_few_rooms_on_few_floors(package):
    graph = {a: list(b) for a, b in house.arrows(package).items()}
    assert len({house.room_of(name) for name in house.files(package)}) <= LIMIT["rooms"][package]
    assert max(house.floors(graph).values()) <= LIMIT["floors"][package]


@packages
def test_folders_do_not_import_each_other(package):
    assert house.circles(house.folder_arrows(package)) == []


def test_the_simulator_knows_no_chemistry():
    for name in house.files("pyscf_ipu"):
        if name.startswith(tuple(f"pyscf_ipu.ipu.{part}" for part in GENERIC)):
            for target, line in house.imported(name):
                inside = target.startswith(tuple(f"pyscf_ipu.ipu.{part}" for part in GENERIC))
                known = inside or target.startswith("pyscf_ipu.base") or target in OF_THE_ENGINE
                assert known, f"{name}:{line} imports {target}"


@packages
def test_folders_are_small(package):
    for folder, paths in house.folders(package).items():
        assert sum(p.suffix == ".py" for p in paths) <= LIMIT["python_files_a_folder"], folder
        lines = sum(len(p.read_text().splitlines()) for p in paths)
        assert lines <= LIMIT["lines_a_folder"], f"{folder}: {lines} lines"


@packages
def test_a_module_name_stands_for_one_thing(package):
    for name, modules in house.modules_by_name(package).items():
        rooms = {module.rpartition(".")[0] for module in modules}
        assert len(modules) == 1 or rooms == MIRRORS.get(name), modules


@packages
def test_a_class_name_stands_for_one_thing(package):
    twice = {n: m for n, m in house.public_classes(package).items() if len(m) > 1}
    assert twice == {}


def test_few_class_names_stand_for_one_thing_in_each_package():
    """A reader of two packages meets them: `schnet.Source` is not `qm1b.inputs.Source`."""
    names = Counter(name for package in house.PACKAGES for name in house.public_classes(package))
    shared = sorted(name for name, packages in names.items() if packages > 1)
    assert len(shared) <= LIMIT["class_names_of_two_packages"], shared


def test_few_long_signatures_and_functions():
    signatures = [x for p in house.PACKAGES for x in house.long_signatures(p, 7)]
    assert len(signatures) <= LIMIT["signatures_of_7_and_more"], signatures
    functions = [x for p in house.PACKAGES for x in house.long_functions(p, 60)]
    assert len(functions) <= LIMIT["functions_over_60_lines"], functions


def test_few_values_of_any_type():
    assert sum(map(house.any_types, house.PACKAGES)) <= LIMIT["any_types"]


def test_limits_only_fall():
    """Each version of the file in the history against the one before, and today's."""

    def git(*words):
        if not shutil.which("git"):
            return ""
        run = subprocess.run(["git", *words], cwd=house.ROOT, capture_output=True, text=True)
        return run.stdout if run.returncode == 0 else ""

    path = LIMITS.relative_to(house.ROOT)
    commits = git("log", "--format=%h", "--", str(path)).split()
    texts = [LIMITS.read_text(), *(git("show", f"{commit}:{path}") for commit in commits)]
    for new, old in pairwise(flat(json.loads(text)) for text in texts if text):
        assert new.keys() >= old.keys()
        raised = {name: (old[name], new[name]) for name in old if new[name] > old[name]}
        assert not raised, f"limits were raised: {raised}; make room instead"


def flat(limits):
    """Limits by one name each."""
    return {
        f"{name} {package}".strip(): value
        for name, values in limits.items()
        for package, value in (values if isinstance(values, dict) else {"": values}).items()
    }
