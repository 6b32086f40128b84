"""The house as its imports draw it: rooms, arrows between them, floors, circles."""

import ast
import functools
import json
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("pyscf_ipu", "qm1b", "schnet")
CODE = (".py", ".cpp", ".hpp", ".js")
LIMITS = ROOT / "tests" / "limits.json"
LIMIT = json.loads(LIMITS.read_text())
"""The limits of the house, which may only fall."""


def files(package):
    """Python files of a package, by dotted name."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = {name: path for package in PACKAGES for name, path in files(package).items()}


@functools.cache
def tree(path):
    """The syntax of a file."""
    return ast.parse(path.read_text())


def imported(name):
    """Modules of the project that a module imports, wherever in its text, with their lines."""
    for node in ast.walk(tree(MODULES[name])):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{MODULES[name]}:{node.lineno} imports by a relative path"
            base = node.module or ""
            inner = [f"{base}.{alias.name}" for alias in node.names]
            targets = [t if t in MODULES else base for t in inner]
        else:
            continue
        for target in dict.fromkeys(targets):
            if target in MODULES and target != name:
                yield target, node.lineno


def folder_of(name):
    """The folder that a module lies in; a file right below the package, or a face, is its own."""
    path = MODULES[name]
    if path.stem == "__init__" or path.parent == ROOT / name.split(".")[0]:
        return name
    return str(path.parent.relative_to(ROOT))


def folder_arrows(package):
    """Folder -> folders of the same package that its files import."""
    found = defaultdict(set)
    for name in files(package):
        for target, _ in imported(name):
            if target.split(".")[0] == package and folder_of(target) != folder_of(name):
                found[folder_of(name)].add(folder_of(target))
    return found


def room_of(name):
    """The folder or file right below the package that a module lies in."""
    return name.split(".")[1] if "." in name else "__init__"


def arrows(package):
    """Room -> rooms of the same package that it imports -> where."""
    found = defaultdict(lambda: defaultdict(list))
    for name in files(package):
        for target, line in imported(name):
            if target.split(".")[0] == package and room_of(target) != room_of(name):
                found[room_of(name)][room_of(target)].append(f"{MODULES[name]}:{line} -> {target}")
    return found


def circles(graph):
    """Sets of nodes that reach each other (strongly connected, more than one)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            members = set()
            while node not in members:
                members.add(stack.pop())
            if len(members) > 1:
                found.append(members)

    for node in list(graph):
        if node not in index:
            visit(node)
    return found


def floors(graph):
    """The floor of every room: one above the highest that it imports; 1 is the ground."""
    found = {}

    def floor(room):
        if room not in found:
            found[room] = 1 + max((floor(r) for r in graph.get(room, ())), default=0)
        return found[room]

    for room in {*graph, *(r for below in graph.values() for r in below)}:
        floor(room)
    return found


def modules_by_name(package):
    """Last part of the dotted name -> modules of a package that bear it; folders left out."""
    found = defaultdict(list)
    for name, path in files(package).items():
        if path.stem != "__init__":
            found[path.stem].append(name)
    return found


def public_classes(package):
    """Class name -> modules of a package that define one at the top, without private ones."""
    found = defaultdict(list)
    for name, path in files(package).items():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    return found


def long_signatures(package, at_least):
    """Functions of that many parameters or more, self and cls not counted."""
    for name, path in files(package).items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef):
                args = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                count = len(args) - (bool(args) and args[0].arg in ("self", "cls"))
                if count >= at_least:
                    yield f"{name}.{node.name}({count})"


def folders(package):
    """Folder -> the files with code that lie directly in it."""
    found = defaultdict(list)
    for path in (ROOT / package).rglob("*"):
        if path.suffix in CODE:
            found[path.parent.relative_to(ROOT)].append(path)
    return found


def long_functions(package, more_than):
    """Functions of more than that many lines, docstring included."""
    for name, path in files(package).items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef) and _lines(node) > more_than:
                yield f"{name}.{node.name}({_lines(node)})"


def any_types(package):
    """How often `Any` is written."""
    nodes = (node for path in files(package).values() for node in ast.walk(tree(path)))
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)


def _lines(node):
    return node.end_lineno - node.lineno + 1
