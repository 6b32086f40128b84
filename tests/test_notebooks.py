"""The committed notebooks are their scripts, executed.  `notebooks/run.py` runs them (.ci/run)."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
MAX_BYTES = 600_000  # an .ipynb lies in the repository's history for ever
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path.name != "run.py")


def text(cell):
    return "".join(cell["source"])


def as_comment(markdown):
    return "\n".join(f"# {line}".rstrip() for line in markdown.splitlines())


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.stem)
def pair(request):
    """The text of a script, and the cells of its notebook."""
    notebook = json.loads(request.param.with_suffix(".ipynb").read_text())
    return request.param.read_text(), notebook["cells"]


def test_a_notebook_says_what_its_script_says(pair):
    rest, cells = pair
    for number, cell in enumerate(cells):
        code = cell["cell_type"] == "code"
        lines = text(cell) if code else as_comment(text(cell))
        before, found, rest = rest.partition(lines)
        assert found, f"not in the script: {lines[:200]}"
        marker = "# %%" if code else "# %% [markdown]"
        assert before.strip() == marker or number == 0
    assert not rest.strip()


def test_every_cell_was_executed_without_an_error(pair):
    _, cells = pair
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [out for cell in code for out in cell["outputs"]]
    assert all(out["output_type"] != "error" for out in outputs)
    assert all(out.get("name") != "stderr" for out in outputs)


def test_a_view_to_turn_has_a_picture_beside_it(pair):
    _, cells = pair
    for cell in cells:
        kinds = {kind for out in cell.get("outputs", ()) for kind in out.get("data", ())}
        if "_make_html" in text(cell):
            assert {"text/html", "image/png"} <= kinds


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_small(script):
    assert script.with_suffix(".ipynb").stat().st_size <= MAX_BYTES


def test_it_begins_with_what_one_learns_the_time_and_how_to_install(pair):
    _, cells = pair
    for words in ("**What you will learn.**", "**What you need.**", "minute", "pip install"):
        assert words in text(cells[0])


def test_the_index_names_every_notebook():
    index = (FOLDER / "README.md").read_text()
    assert SCRIPTS
    for path in SCRIPTS:
        assert f"({path.stem}.ipynb)" in index


def test_the_folder_can_be_copied_alone():
    """`notebooks/run.py` executes a copy; a link to another folder would lead nowhere there."""
    assert not [path for path in FOLDER.rglob("*") if path.is_symlink()]
    for script in SCRIPTS:
        assert "benchmarks." not in "".join(
            line for line in script.read_text().splitlines() if line.startswith(("import", "from"))
        )
