"""The real command with the real engine, on a handful of molecules: one program."""

import numpy as np
import pandas as pd
import pytest
from fake_runs import command
from pyscf import dft, gto

from pyscf_ipu.base.units import HARTREE_TO_EV
from qm1b.cli import main
from qm1b.folder import shards

SMILES = "O\t1\t1\nC\nN\nC#N\nC=O\n[CH3]\nO\n" + "C" * 200 + "\n"
CONFORMERS = 2


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A finished run: its folder, what it printed, and how to run it again, with its disk cache."""
    folder = tmp_path_factory.mktemp("real")
    source, out = folder / "tiny.smi", folder / "out"
    source.write_text(SMILES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSCF_IPU_CACHE", str(folder / "cache"))
        # The tests' own cache may hold the program, from an earlier session.
        patch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
        arguments = ("--conformers", CONFORMERS, "--seed", 3)
        done = command("generate", source, "--out", out, *arguments)
        assert done.returncode == 0, done.stderr
        yield (
            out,
            done.stdout,
            ["generate", source, "--out", folder / "again", *arguments],
        )


@pytest.fixture(scope="module")
def table(real, tmp_path_factory):
    parquet = tmp_path_factory.mktemp("export") / "tiny.parquet"
    assert main(["export", str(real[0]), str(parquet)]) == 0
    return pd.read_parquet(parquet)


@pytest.mark.slow
def test_what_the_command_says_and_leaves(real, capsys):
    out, text, _ = real
    assert "10 conformers of 5 molecules" in text
    assert "programs: 1 compiled" in text
    assert f"The data are in {out}" in text
    drops = pd.read_csv(out / shards.DROPPED)
    assert drops["line"].tolist() == [6, 7, 8]
    assert drops["reason"].tolist() == ["radical", "duplicate", "too_large"]
    assert main(["info", str(out)]) == 0
    described = capsys.readouterr().out
    assert "complete" in described
    assert "475" in described


@pytest.mark.slow
def test_a_second_run_compiles_nothing_and_finds_the_same(real, capsys):
    """Of one worker, where the first had as many as there are cores."""
    out, _, again = real
    done = command(*again, "--workers", 1)
    assert "programs: 0 compiled" in done.stdout
    first, second = (shards.read_shard(shards.shards(f)[0]) for f in (out, out.parent / "again"))
    assert first["energy"].tolist() == second["energy"].tolist()
    assert main([*map(str, again), "--workers", "1"]) == 0
    assert "(10 of them from earlier runs)" in capsys.readouterr().out


@pytest.mark.slow
def test_rows_are_b3lyp5_energies_of_their_positions(table):
    assert len(table) == 5 * CONFORMERS
    for _, row in table.drop_duplicates("smile").iterrows():
        positions = row["pos"].astype(float).reshape(-1, 3)
        atoms = [(int(z), xyz) for z, xyz in zip(row["z"], positions, strict=True)]
        method = dft.RKS(gto.M(atom=atoms, unit="Bohr", basis="sto-3g", verbose=0), xc="b3lyp5")
        method.grids.level = 0
        assert row["energy"] == pytest.approx(method.kernel() * HARTREE_TO_EV, abs=5e-3)
        occupied = method.mol.nelectron // 2
        homo, lumo = method.mo_energy[occupied - 1 : occupied + 1] * HARTREE_TO_EV
        assert row["homo"] == pytest.approx(homo, abs=2e-3)
        assert row["y"] == pytest.approx(lumo - homo, abs=2e-3)
        charges = method.mulliken_pop(verbose=0)[1]
        np.testing.assert_allclose(row["mulliken_charges"], charges, rtol=0, atol=1e-4)
