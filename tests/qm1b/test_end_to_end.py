"""The real command with the real engine, on a handful of molecules."""

import pandas as pd
import pytest
from test_cli import command

from pyscf_ipu.units import HARTREE_TO_EV

pytest.importorskip("pyscf_ipu.solver")

SMILES = "O\t1\t1\nC\nN\nC#N\nC=O\n[CH3]\nO\n"


@pytest.mark.slow
def test_generate_export_info(tmp_path):
    source = tmp_path / "tiny.smi"
    source.write_text(SMILES)
    out, parquet = tmp_path / "out", tmp_path / "tiny.parquet"
    done = command("generate", source, "--out", out, "--conformers", 2, "--seed", 3)
    assert done.returncode == 0, done.stderr
    assert "10 conformers of 5 molecules" in done.stdout
    assert str(out) in done.stdout
    assert "[CH3],radical" in (out / "dropped.csv").read_text()
    again = command("generate", source, "--out", out)
    assert again.returncode == 2
    assert "already holds a run" in again.stderr

    assert command("export", out, parquet).returncode == 0
    table = pd.read_parquet(parquet)
    assert len(table) == 10
    water = table[table["smile"] == "O"].iloc[0]
    # B3LYP/STO-3G water lies near -75.3 Hartree whatever the geometry of the force field.
    assert water["energy"] / HARTREE_TO_EV == pytest.approx(-75.28, abs=0.1)
    assert (table["y"] > 0).all()
    assert "complete" in command("info", out).stdout
