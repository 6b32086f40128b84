"""Calls of the project's own functions and classes, and which arguments they give by position.

A callee is found by imports, also through the packages' own re-exports, by definitions of the same
module, nested ones too, and by the name of a method.  A function that is passed around is not.
"""

import ast
import functools
from collections import defaultdict
from typing import NamedTuple

from house import MODULES, tree


class Call(NamedTuple):
    """A call that gives arguments by position."""

    module: str
    node: ast.Call
    callee: str
    names: list[str]
    """Parameters that a position can fill, without self."""

    @property
    def by_position(self):
        """How many of them are filled so; all that a `*` may reach."""
        starred = any(isinstance(arg, ast.Starred) for arg in self.node.args)
        return len(self.names) if starred else min(len(self.node.args), len(self.names))

    def __str__(self):
        place = f"{MODULES[self.module]}:{self.node.lineno}"
        return f"{place}: {self.callee} has {self.by_position} arguments by position"


def calls(modules):
    """All calls of the project's own functions in some modules."""
    for module in modules:
        for node in ast.walk(tree(MODULES[module])):
            if isinstance(node, ast.Call) and node.args:
                for callee, names in callees(node.func, module, class_around(module, node)):
                    yield Call(module, node, callee, names)


def class_around(module, node):
    """The name of the class whose text a node stands in, innermost first; "" outside."""
    around = [
        c
        for c in definitions(module).values()
        if isinstance(c, ast.ClassDef) and c.lineno <= node.lineno <= c.end_lineno
    ]
    return max(around, key=lambda c: c.lineno).name if around else ""


def callees(func, module, around):
    """What a call may call: its name, and its parameters for positions."""
    if isinstance(func, ast.Name):
        yield from found(home_of(around if func.id == "cls" else func.id, module))
    elif isinstance(func, ast.Attribute):
        target = owner_of(func.value, module)
        if target in MODULES:
            yield from found(f"{target}.{func.attr}")
        elif not target or defined(target):
            for home, owner, method in methods()[func.attr]:
                if target in ("", f"{home}.{owner}"):
                    static = any(ast.unparse(d) == "staticmethod" for d in method.decorator_list)
                    names = positional(home, method)[0 if static else 1 :]
                    yield f"{home}.{owner}.{func.attr}", names


def owner_of(node, module):
    """The dotted name of what stands before a dot; "" for a variable, or a value."""
    if isinstance(node, ast.Name):
        return home_of(node.id, module)
    before = owner_of(node.value, module) if isinstance(node, ast.Attribute) else ""
    return before and resolved(f"{before}.{node.attr}")


def home_of(name, module):
    """The dotted name that a name stands for in a module; "" for a variable."""
    if name in definitions(module):
        return f"{module}.{name}"
    return resolved(imports(module).get(name, ""))


def found(dotted):
    """The definition that a dotted name of the project leads to."""
    target = resolved(dotted)
    node = defined(target)
    if node is not None:
        yield target, positional(target.rpartition(".")[0], node)


def resolved(dotted):
    """A dotted name, followed through re-exports."""
    module, _, name = dotted.rpartition(".")
    while dotted not in MODULES and module in MODULES and name not in definitions(module):
        if name not in imports(module):
            break
        dotted = imports(module)[name]
        module, _, name = dotted.rpartition(".")
    return dotted


def defined(dotted):
    """The function or class of a dotted name; None if the project has none."""
    module, _, name = dotted.rpartition(".")
    return definitions(module).get(name) if module in MODULES else None


@functools.cache
def definitions(module):
    """Functions and classes by name, wherever in the module; methods left out."""
    nodes = list(ast.walk(tree(MODULES[module])))
    inside = {id(n) for c in nodes if isinstance(c, ast.ClassDef) for n in c.body}
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {n.name: n for n in nodes if isinstance(n, kinds) and id(n) not in inside}


@functools.cache
def imports(module):
    """What the names that a module imports stand for."""
    names = {}
    for node in ast.walk(tree(MODULES[module])):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                names[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


@functools.cache
def methods():
    """Method name -> module, class and definition of each that the project has."""
    homes = defaultdict(list)
    for module, path in MODULES.items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef):
                        homes[part.name].append((module, node.name, part))
    return homes


def positional(module, node):
    """Parameters of a function, or of a class's constructor, that a position can fill."""
    if isinstance(node, ast.FunctionDef):
        return [arg.arg for arg in node.args.posonlyargs + node.args.args]
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return positional(module, part)[1:]
    if any("kw_only=True" in ast.unparse(decorator) for decorator in node.decorator_list):
        return []
    names = []
    for base in node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(base, ast.Name):
            of_base = found(home_of(base.id, module))
            names += [name for _, names_of_base in of_base for name in names_of_base]
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    return names + [
        part.target.id
        for part in fields
        if "ClassVar" not in ast.unparse(part.annotation) and "init=False" not in ast.unparse(part)
    ]
