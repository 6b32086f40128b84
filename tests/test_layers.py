"""The order of the rooms: an import goes down, a folder stays small, a name means one thing.

ORDER lists the rooms of each package from the ground up.  A new room is a new line here, and the
place of that line says what the room may import: every room on a lower line, and no other.
"""

import ast

import house
import pytest

ORDER = {
    "pyscf_ipu": [
        "lazy",
        "advice",
        "__init__",
        "units",
        "errors",
        "terminal",
        "host",
        "command_line",
        "suffixes",
        "dispersion",
        "numerics",
        "xc",
        "convergence",
        "codelets",
        "tiles",
        "elements",
        "auxiliary",
        "settings",
        "molecule",
        "output",
        "shapes",
        "integrals",
        "fitting",
        "grid",
        "scf",
        "stability",
        "gpu",
        "kohn_sham",
        "gradient",
        "solver",
        "differentiable",
        "api",
        "ipu",
        "nanodft",
        "interop",
        "commands",
        "cli",
    ],
    "qm1b": [
        "errors",
        "software",
        "storage",
        "process",
        "work_units",
        "rows",
        "manifest_schema",
        "settings",
        "reference",
        "inputs",
        "screening",
        "conformers",
        "engine",
        "folder",
        "formats",
        "consumers",
        "run",
        "report",
        "costs",
        "audit",
        "card",
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
        "exports",
        "training",
        "costs",
        "calculator",
        "__init__",
        "commands",
        "cli",
    ],
}
FLOORS = {"pyscf_ipu": 15, "qm1b": 11, "schnet": 8}
ACROSS = {("qm1b", "pyscf_ipu"), ("schnet", "qm1b"), ("schnet", "pyscf_ipu")}
"""Package -> packages that it may import."""

MAX_FILES = 9

MIRRORS = {
    # The gradient of an integral lies in a file of the integral's name.
    "electron_repulsion": {"pyscf_ipu.integrals", "pyscf_ipu.gradient"},
    "one_electron": {"pyscf_ipu.integrals", "pyscf_ipu.gradient"},
    "program": {"pyscf_ipu.kohn_sham", "pyscf_ipu.gradient"},
    # A command of a part of the package.
    "command": {"pyscf_ipu.ipu", "pyscf_ipu.nanodft"},
    # A subcommand, and what it runs.
    "generate": {"qm1b.commands", "qm1b.run"},
    # A process with a pipe, and what it does for the engine.
    "worker": {"qm1b.process", "qm1b.engine"},
}
"""Module names that stand twice in a package on purpose."""

MAX_LONG_SIGNATURES = 2
LONG = 7
MAX_ANY = 150

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
def test_few_floors(package):
    graph = {a: list(b) for a, b in house.arrows(package).items() if a != "__init__"}
    assert max(house.floors(graph).values()) <= FLOORS[package]


@packages
def test_rooms_are_small(package):
    for folder, names in house.folders(package).items():
        assert len(names) <= MAX_FILES, folder


@packages
def test_a_module_name_stands_for_one_thing(package):
    for name, modules in house.modules_by_name(package).items():
        rooms = {module.rpartition(".")[0] for module in modules}
        assert len(modules) == 1 or rooms == MIRRORS.get(name), modules


@packages
def test_a_class_name_stands_for_one_thing(package):
    twice = {n: m for n, m in house.public_classes(package).items() if len(m) > 1}
    assert twice == {}


def test_few_long_signatures():
    found = [x for p in house.PACKAGES for x in house.long_signatures(p, LONG)]
    assert len(found) <= MAX_LONG_SIGNATURES, found


def test_few_values_of_any_type():
    trees = [house.tree(f) for p in house.PACKAGES for f in house.files(p).values()]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    assert sum(isinstance(n, ast.Name) and n.id == "Any" for n in nodes) <= MAX_ANY
