"""The documented tables are those of the schema: every field, every column, with type and unit."""

import re
from pathlib import Path

import pytest

from qm1b.formats.columns import COLUMNS, arrow_type, exact_columns
from qm1b.rows.schema import DROP_REASONS, FIELDS

TEXT = (Path(__file__).parents[3] / "docs" / "data-format.md").read_text()


def section(title):
    return TEXT.split(f"## {title}\n")[1].split("\n## ")[0]


def table(title):
    """First cell's names -> the other cells, of the table in a section."""
    cells_of = {}
    for line in section(title).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|"):
            for name in re.findall(r"`([^`]+)`", cells[0]):
                cells_of[name] = cells[1:]
    return cells_of


def said(unit):
    return unit.replace("*", "\N{MIDDLE DOT}")


@pytest.mark.parametrize("field", FIELDS, ids=lambda f: f.name)
def test_every_field_of_a_shard_is_documented(field):
    dtype, unit, _ = table("HDF5 shards")[field.name]
    assert dtype.split(" ")[0] == {"str": "string"}.get(field.dtype, field.dtype)
    assert re.findall(r", (\d+)(?=[,\]])", dtype) == list(map(str, field.shape))
    assert unit == said(field.unit)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: c.name)
def test_every_column_of_parquet_is_documented(column):
    arrow, unit, _ = table("Parquet")[column.name]
    inside = re.compile("element: |item: ")  # as versions of pyarrow name it
    assert arrow.replace("\\", "") == inside.sub("", str(arrow_type(column)))
    assert unit == said(column.unit)


def test_nothing_else_is_documented():
    assert set(table("HDF5 shards")) == {f.name for f in FIELDS}
    assert set(table("Parquet")) == {c.name for c in COLUMNS}


def test_the_exact_columns_and_the_reasons_are_documented():
    there_and_back = section("There and back")
    for field, name in exact_columns(FIELDS):
        assert f"`{name}`" in there_and_back, (name, arrow_type(field))
    assert set(DROP_REASONS) == set(table("Reasons for a drop"))
