"""`--open-shells`: rows of two spins beside those of closed shells, in every file and command."""

import json

import ase.io
import numpy as np
import pytest
from fake_runs import MANY, fake_run
from optional_columns import (
    check_merged,
    check_repaired,
    check_resumed_with_the_same_choice_only,
)

from qm1b import load
from qm1b.audit.bounds import Bounds
from qm1b.audit.comparison import SAME
from qm1b.audit.verify import Effort, verify
from qm1b.cli import main
from qm1b.convert.export import export
from qm1b.convert.importing import import_file
from qm1b.engine.factory import DEFAULT
from qm1b.folder import same, shards
from qm1b.rows.schema import CONVERGED
from qm1b.settings import EVERY

pytestmark = pytest.mark.usefixtures("blank_pictures")

NEW = ("multiplicity", "s_squared", "spin_populations")
TEXT = MANY + "C[C]C\n[O]\n"
FAKED = ("free_atoms", "orbital_energies_inconsistent")
"""What the numbers of the fake engine violate in every run."""
CHOSEN = {"open_shells": True, "multiplicities": EVERY}


@pytest.fixture(scope="module")
def with_spins(tmp_path_factory):
    return fake_run(tmp_path_factory.mktemp("spins"), TEXT, **CHOSEN)[0]


def test_rows_have_their_spin_and_closed_shells_none(with_spins):
    seen = {}
    for row in load(with_spins):
        unpaired = row["multiplicity"] - 1
        assert row["spin_populations"].shape == row["numbers"].shape
        if row["status"] == CONVERGED:
            assert row["spin_populations"].sum() == unpaired
            is_open = row["smiles"] in ("[CH3]", "C[C]C", "[O]")
            assert len(row["mo_energy"]) == (1 + is_open) * row["n_ao"]
            least = unpaired / 2 * (unpaired / 2 + 1)
            assert row["s_squared"] == least + (0.5 if is_open and not unpaired else 0.0)
            assert row["suspect"] == ("spin_contamination" if row["s_squared"] > least else "")
            seen.setdefault(row["smiles"], []).append(row["multiplicity"])
    assert seen["[CH3]"] == [2, 2]
    assert seen["C[C]C"] == [3, 3, 1, 1]
    assert seen["[O]"] == [3, 3, 1, 1]
    assert seen["O"] == [1, 1]


def test_closed_shells_keep_their_bits(with_spins, whole):
    rows = {row["smiles"]: row for row in load(with_spins) if row["conformer"] == 0}
    for row in load(whole):
        if row["conformer"] == 0:
            beside = rows[row["smiles"]]
            for name in row.keys() - {"line"}:
                np.testing.assert_array_equal(row[name], beside[name])


def test_without_the_option_there_is_no_column(whole):
    assert not {*NEW} & {*shards.read_shard(shards.shards(whole)[0]).columns}
    assert "open_shells" not in json.loads((whole / "manifest.json").read_text())["settings"]


def test_a_run_is_resumed_only_with_the_same_choice(tmp_path_factory, tmp_path):
    alone = fake_run(tmp_path_factory.mktemp("alone"), MANY, open_shells=True)[0]
    check_resumed_with_the_same_choice_only(
        alone, tmp_path, "open_shells +true +-", open_shells=True
    )


def test_a_damaged_shard_and_shares(tmp_path_factory, whole, tmp_path):
    alone = fake_run(tmp_path_factory.mktemp("alone"), MANY, open_shells=True)[0]
    (tmp_path / "shares").mkdir()
    check_repaired(alone, tmp_path, open_shells=True)
    check_merged(alone, whole, tmp_path / "shares", "open_shells", NEW[0], open_shells=True)


@pytest.mark.parametrize("name", ["a.parquet", "a.extxyz"])
def test_exports_lose_nothing(with_spins, tmp_path, name):
    export(with_spins, tmp_path / name)
    good = [row for row in load(with_spins) if row["status"] == CONVERGED]
    for ours, theirs in zip(good, load(tmp_path / name), strict=True):
        for field in NEW:
            np.testing.assert_allclose(theirs[field], ours[field])
    export(with_spins, tmp_path / name, everything=True)
    import_file(tmp_path / name, tmp_path / "back")
    assert same.differences(with_spins, tmp_path / "back") == []


def test_other_programs_find_the_multiplicity(with_spins, tmp_path):
    export(with_spins, tmp_path / "a.extxyz")
    good = [row for row in load(with_spins) if row["status"] == CONVERGED]
    frames = list(ase.io.read(tmp_path / "a.extxyz", ":"))
    frames = [frame for frame in frames if frame.info["config_type"] == "Default"]
    for row, frame in zip(good, frames, strict=True):
        assert frame.info["spin"] == frame.info["total_spin"] == row["multiplicity"]


def test_invariants_hold_and_are_looked_at(with_spins):
    found = verify(with_spins, 0, bounds=dict.fromkeys(vars(Bounds())), effort=Effort(workers=1))
    assert not {name: v for name, v in found.invariants.items() if v.count and name not in FAKED}


def test_flags_that_do_not_go_together(tmp_path, capsys):
    source = tmp_path / "a.smi"
    source.write_text("C\n")
    assert main(["generate", str(source), "--multiplicities", "all"]) == 2
    assert "give --open-shells, too" in capsys.readouterr().err
    simulated = ["generate", str(source), "--open-shells", "--machine", "bow"]
    assert main([*simulated, "--out", str(tmp_path / "out")]) == 2
    assert "open shells" in capsys.readouterr().err


@pytest.mark.long
def test_a_real_run_is_that_of_pyscf(tmp_path):
    text = "[CH2]\n[OH]\nC[NH]\nO\n"
    out, _ = fake_run(tmp_path, text, factory=DEFAULT, forces=True, **CHOSEN)
    bounds = {"gap_mae_mev": 5.0}  # hydroxyl's p orbital turns freely
    found = verify(out, 20, bounds=bounds, effort=Effort(workers=2))
    assert not found.missed
    assert {row.state for row in found.sample} == {SAME}
    assert len(found.sample) == 10
    assert max(abs(row.energy_mev) for row in found.sample) < 1.0
    assert max(row.force_mev_angstrom or 0.0 for row in found.sample) < 10.0
    spins = {(row["smiles"], row["multiplicity"]): row["s_squared"] for row in load(out)}
    assert spins["[CH2]", 3] == pytest.approx(2.0, abs=0.02)
    assert spins["[CH2]", 1] > 0.1
    assert spins["C[NH]", 2] == pytest.approx(0.75, abs=0.02)
