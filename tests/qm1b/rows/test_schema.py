"""A column stands once: one line of the schema brings it into shards, `load`, and files."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

NEW = """
    overlap_smallest: float = stored("float64", "1", "smallest overlap", default=NAN)
    level_moment: tuple[float, ...] = stored(
        "float64", "hartree", "a number of each atom", default=(), ragged="atom",
        column=Column("it in eV", "eV"),
    )
    troubles: tuple[str, ...] = ()"""

RUN = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.find_spec("qm1b.rows.schema")
schema, text = importlib.util.module_from_spec(spec), Path(spec.origin).read_text()
assert text.count(LAST) == 1
sys.modules[spec.name] = schema
exec(compile(text.replace(LAST, NEW), spec.origin, "exec"), schema.__dict__)

import fake_engine, fake_runs, numpy as np, qm1b
from qm1b.convert.export import export
from qm1b.folder import shards

class Engine(fake_engine.Solver):
    def result(self, molecule, *how):
        given = super().result(molecule, *how)
        given.overlap_smallest = np.float64(0.25)
        given.level_moment = np.arange(len(molecule.numbers)) / 8
        return given

fake_engine.Solver = Engine
out, _ = fake_runs.fake_run(Path(FOLDER), "O\\n", conformers=1)
(shard,) = shards.shards(out)
for suffix in ("parquet", "extxyz"):
    export(out, out.parent / f"a.{suffix}", everything=True)
for rows in (
    shards.read_shard(shard),
    *(next(qm1b.load(out.parent / name).batches()) for name in (out, "a.parquet", "a.extxyz")),
):
    assert rows["overlap_smallest"].tolist() == [0.25]
    assert rows["level_moment"].tolist() == [0.0, 0.125, 0.25]
import pyarrow.parquet as pq
names = pq.read_schema(out.parent / "a.parquet").names
assert {"overlap_smallest", "level_moment", "level_moment_hartree"} < set(names)
"""


@pytest.mark.slow
def test_a_new_column_is_one_entry_of_the_schema(tmp_path):
    """The engine's result has it under the same name, and nothing else names it."""
    texts = f"LAST, NEW, FOLDER = {NEW.splitlines()[-1]!r}, {NEW[1:]!r}, {str(tmp_path)!r}"
    path = f"import sys; sys.path[:0] = {[str(TESTS.parent), str(TESTS)]!r}"
    code = "\n".join([path, texts, RUN])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
