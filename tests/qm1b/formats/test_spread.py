"""QM1B's column `std` in our files, and which meaning a file has."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from fake_runs import fake_run

import qm1b
from pyscf_ipu.base.units import HARTREE_TO_EV
from pyscf_ipu.numerics.precision import PRECISIONS
from qm1b.convert.export import export
from qm1b.convert.parts import export_parts
from qm1b.formats.spread import MEANING, MOST_CHANGE_HARTREE, published_std
from qm1b.rows.batch import Batch
from qm1b.settings import PRESETS


def test_the_thresholds_are_those_of_the_scf():
    assert dict(MOST_CHANGE_HARTREE) == {n: p.energy_change for n, p in PRECISIONS.items()}


def test_only_what_follows_convergence_counts():
    spread = np.array([0.01, 1e-6, 0.01, np.nan])
    status = np.array(["converged", "converged", "not_converged", "converged"], object)
    batch = Batch({"energy_std": spread, "status": status})
    found = published_std(batch, {"precision": "float32"})
    np.testing.assert_array_equal(found, [5e-5, 1e-6, 0.01, np.nan])
    for settings in ({}, {"precision": "float32", "fixed_cycles": 20}):
        np.testing.assert_array_equal(published_std(batch, settings), spread)
    ours = published_std(Batch({"energy_std": spread}), {"precision": "float32"})
    np.testing.assert_array_equal(ours, spread)  # a file without status: QM1B's own layout


@pytest.fixture(scope="module", params=[0, 20])
def exported(request, tmp_path_factory):
    """A run, the fixed number of its cycles, and its exports."""
    folder = tmp_path_factory.mktemp("run")
    level = replace(PRESETS["qm1b"], fixed_cycles=request.param)
    run, _ = fake_run(folder, "O\nC\nCCO\n", level=level)
    export(run, folder / "a.parquet")
    export_parts(run, folder / "parts", 1)
    return run, request.param, folder / "a.parquet", folder / "parts" / "part_000.parquet"


def test_files_say_what_their_std_is(exported):
    run, fixed, *files = exported
    known = {row["energy"]: row["energy_std"] for row in qm1b.load(run)}
    for path in files:
        schema, table = pq.read_schema(path), pd.read_parquet(path)
        said = schema.metadata[MEANING.encode()].decode()
        assert said == schema.field("std").metadata[b"description"].decode()
        assert ("20 cycle energies" in said) == bool(fixed)
        most = np.inf if fixed else 5e-5
        by_energy = {round(energy * HARTREE_TO_EV, 6): s for energy, s in known.items()}
        stored = [by_energy[round(energy, 6)] for energy in table["energy"]]
        expected = np.minimum(stored, most) * HARTREE_TO_EV
        np.testing.assert_allclose(table["std"], expected, rtol=1e-6)
        if "energy_std" in table:
            np.testing.assert_allclose(table["energy_std"], np.multiply(stored, HARTREE_TO_EV))


def test_both_are_read(exported, tmp_path):
    """The number of the row; from ten columns QM1B's, and from files of before, their `std`."""
    run, _, whole, ten = exported
    of_run = [row["energy_std"] for row in qm1b.load(run)]
    of_file = [row["energy_std"] for row in qm1b.load(whole, ["energy_std"])]
    np.testing.assert_allclose(of_file, of_run, rtol=1e-6)
    ours = [row["energy_std"] * HARTREE_TO_EV for row in qm1b.load(ten, ["energy_std"])]
    np.testing.assert_allclose(ours, pd.read_parquet(ten)["std"], rtol=1e-6)
    table = pq.read_table(whole)
    before = table.drop_columns("std").rename_columns(
        ["std" if name == "energy_std" else name for name in table.column_names if name != "std"]
    )
    entries = {k: v for k, v in table.schema.metadata.items() if k != MEANING.encode()}
    pq.write_table(before.replace_schema_metadata(entries), tmp_path / "before.parquet")
    again = [row["energy_std"] for row in qm1b.load(tmp_path / "before.parquet")]
    np.testing.assert_allclose(again, of_run, rtol=1e-6)
    assert json.loads(entries[b"settings"])["precision"] == "float32"
