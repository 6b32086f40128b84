"""One hash of all code that decides rows: it says whether two programs compute the same.

A version number stands still while code changes.  The hash covers every module that the worker
processes import, found by their import statements, and the C++ of the codelets with the compiler
that built it.  Comments, docstrings and layout do not count.
"""

import ast
import functools
import hashlib
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from qm1b.storage import kept

PACKAGES = ("pyscf_ipu", "qm1b", "schnet")

WORKERS = ("qm1b.engine.worker", "qm1b.conformers.embed_pool")
"""What the worker processes run; with it comes what screens the input."""

ROOTS = (
    *WORKERS,
    "qm1b.run.second_look",
    "qm1b.reference.atomisation",
    "qm1b.reference.free_atoms",
)
"""Besides, what else decides values of rows: which are suspect, and energies of atomisation."""

SIMULATOR = "pyscf_ipu.ipu"
"""Decides only rows that a simulated chip computes; without it the hash takes half the time."""

CODELETS = "pyscf_ipu/codelets/cpp"

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\w+(?:'\w+)*|\S""", re.DOTALL
)
"""A comment, a text, a word or number, or a sign of C++."""

TextOf = Callable[[Path], str]


@functools.cache
def sources(built: str, is_simulated: bool = False) -> str:
    """16 hexadecimal digits for the code that this process computes rows with.

    Args:
        built: what built the codelets.
        is_simulated: whether a simulated chip computes them.
    """
    homes = _homes()
    written = hashlib.sha256()
    for path in _files(homes):
        written.update(path.read_bytes())
    key = {"files": written.hexdigest(), "built": built, "is_simulated": is_simulated}
    known = kept.find("sources", key)
    if isinstance(known, str):
        return known
    new = digest(homes, built, _text, is_simulated=is_simulated)
    kept.keep("sources", key, new)
    return new


def _files(homes: Mapping[str, Path]) -> Iterator[Path]:
    """All that may count; to read it takes a tenth of the time of `digest`."""
    for name in sorted(homes):
        yield from sorted(homes[name].rglob("*.py"))
    yield from _codelets(homes)


def _codelets(homes: Mapping[str, Path]) -> list[Path]:
    return sorted((homes["pyscf_ipu"].parent / CODELETS).rglob("*.?pp"))


def digest(
    homes: Mapping[str, Path], built: str, text_of: TextOf, is_simulated: bool = False
) -> str:
    """The hash of the code in some folders.

    Args:
        homes: the folder of each package.
        built: what built the codelets.
        text_of: reads a file.
        is_simulated: whether SIMULATOR counts.
    """
    sha = hashlib.sha256(built.encode())
    trees = modules(homes, text_of, is_simulated)
    for name in sorted(trees):
        sha.update(f"\n{name}\n".encode())
        words: list[str] = []
        _plain(trees[name], words)
        sha.update("\0".join(words).encode())
    folder = homes["pyscf_ipu"].parent / CODELETS
    for path in _codelets(homes):
        sha.update(f"\n{path.relative_to(folder)}\n".encode())
        sha.update("\0".join(_tokens(text_of(path))).encode())
    return sha.hexdigest()[:16]


def modules(
    homes: Mapping[str, Path], text_of: TextOf, is_simulated: bool = False
) -> Mapping[str, ast.Module]:
    """The syntax of all modules that ROOTS import, also inside functions, by name."""
    trees: dict[str, ast.Module] = {}
    to_do = list(ROOTS)
    while to_do:
        name = to_do.pop()
        path = _file(homes, name)
        left_out = name.startswith(SIMULATOR) and not is_simulated
        if name in trees or path is None or left_out:
            continue
        trees[name] = ast.parse(text_of(path))
        to_do += [*_imported(trees[name]), *_above(name)]
    return MappingProxyType(trees)


def _text(path: Path) -> str:
    """A file's text, which no setting of the language changes."""
    return path.read_text(encoding="utf-8")


def _homes() -> dict[str, Path]:
    """Where the packages lie; importing them is not needed."""
    specs = {name: importlib.util.find_spec(name) for name in PACKAGES}
    return {n: Path(s.origin).parent for n, s in specs.items() if s is not None and s.origin}


def _file(homes: Mapping[str, Path], name: str) -> Path | None:
    """The file of a module of the project; None for other names."""
    package, *parts = name.split(".")
    if package not in homes:
        return None
    path = homes[package].joinpath(*parts)
    files = (path / "__init__.py", path.with_name(f"{path.name}.py"))
    return next((file for file in files if file.is_file()), None)


def _above(name: str) -> list[str]:
    """The packages that a module lies in, which Python imports first."""
    parts = name.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]


def _imported(node: ast.AST) -> Iterator[str]:
    """The names that code imports; what only type checkers import does not run."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield child.module
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            yield from (name for other in child.orelse for name in _imported(other))
        elif not isinstance(child, ast.expr):
            yield from _imported(child)


def _plain(node: object, words: list[str]) -> None:
    """Say what code says, without texts that stand alone: the same for every version of Python.

    `ast.dump` also writes fields that only newer versions have, such as type parameters.
    """
    if isinstance(node, ast.AST):
        words.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != [] and name not in ("ctx", "kind"):
                words.append(name)
                _plain(value, words)
        words.append(")")
    elif isinstance(node, list):
        for each in node:
            if not _is_text(each):
                _plain(each, words)
    else:
        words.append(repr(node))


def _is_text(node: object) -> bool:
    """Whether a statement is a text alone, as docstrings are."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def _tokens(text: str) -> Iterable[str]:
    """The words and signs of C++, without comments."""
    tokens = (match.group() for match in TOKEN.finditer(text))
    return (token for token in tokens if not token.startswith(("//", "/*")))
