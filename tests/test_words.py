"""Words of the code: docstrings that stand alone, and locals named by what they hold."""

import ast
import re

import house
import pytest

NO_OPENING = re.compile(r"(The same|Those of|That of|As |Of |See |Its |Theirs)")
"""A docstring begins with a verb, or with an article and a noun."""

SAY_NOTHING = ("found", "told", "said", "dear", "rough", "poor", "soft", "stands", "careful")
"""Names of locals that could hold anything; `limits.json` counts them."""


def documented(package):
    """Place and first line of every docstring of a package."""
    for name, path in house.files(package).items():
        for node in ast.walk(house.tree(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node) or ""
                yield f"{name}:{getattr(node, 'lineno', 1)}", text.partition("\n")[0]


@pytest.mark.parametrize("package", house.PACKAGES)
def test_a_docstring_begins_with_a_verb_or_a_noun(package):
    assert [x for x in documented(package) if NO_OPENING.match(x[1])] == []


def test_locals_are_named_by_what_they_hold():
    names = [
        f"{path.relative_to(house.ROOT)}:{node.lineno} {node.id}"
        for path in house.MODULES.values()
        for node in ast.walk(house.tree(path))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if node.id.strip("_") in SAY_NOTHING
    ]
    assert len(names) <= house.LIMIT["locals_that_say_nothing"], "\n".join(names)
