"""The audit: true datasets pass, and each kind of error that is put in is found and named."""

import json
import re
from dataclasses import replace
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from pyscf import gto, scf

from pyscf_ipu.settings import Settings
from qm1b.audit import verify as audit_verify
from qm1b.audit.comparison import QUANTITIES
from qm1b.audit.invariants import FILE_CHECKS, ROW_CHECKS
from qm1b.audit.verify import Effort, as_text, verify
from qm1b.audit.verify import write as write_audit
from qm1b.cli import main
from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest.manifest import InputRecord, Manifest
from qm1b.folder.manifest.tally import Tally
from qm1b.reference.recompute import attempt, recompute
from qm1b.rows.schema import Conformer, Row
from qm1b.settings import RunSettings

HARTREE_TO_EV = 27.211386245988
LEVEL = Settings(basis="sto-3g", xc="hf", grid_level=0, precision="float64")


def solved(line, conformer, atoms, better=False):
    """A row with Hartree-Fock's own numbers; positions are float32, as in a dataset."""
    symbols, positions = zip(*((a[0], a[1:]) for a in atoms), strict=True)
    positions = np.array(positions, dtype=np.float32).astype(float)
    mole = gto.M(atom=list(zip(symbols, positions, strict=True)), unit="B", basis="sto-3g")
    field = scf.RHF(mole).set(conv_tol=1e-12, verbose=0)
    field.kernel()
    if better:
        field = field.newton().run(field.stability()[0], field.mo_occ)
    n = mole.nelectron // 2
    moments = tuple(field.dip_moment(unit="AU", verbose=0).tolist())
    numbers = mole.atom_charges().astype(np.uint8)
    energies = np.sort(field.mo_energy)
    molecule = Conformer(
        line=line, smiles="".join(symbols), conformer=conformer, seed=1, charge=0,
        numbers=numbers, positions=positions,
    )  # fmt: skip
    return Row(
        conformer=molecule, status="converged", n_ao=mole.nao, energy=field.e_tot,
        homo=energies[n - 1], lumo=energies[n], energy_std=1e-9, dipole=moments,
        converged=True, cycles=9, commutator_norm=1e-9, mo_energy=tuple(energies.tolist()),
        mulliken_charges=tuple(field.mulliken_pop(verbose=0)[1].tolist()),
    )  # fmt: skip


@pytest.fixture(scope="module")
def truth():
    """Four waters and four molecules of hydrogen fluoride."""
    rows = []
    for i in range(4):
        x, z = 1.43 + 0.02 * i, -0.89 + 0.01 * i
        rows.append(solved(1, i, [("O", 0, 0, 0.2), ("H", x, 0, z), ("H", -x, 0, z)]))
    return rows + [solved(2, i, [("F", 0, 0, 0), ("H", 0, 0, 1.75 + 0.03 * i)]) for i in range(4)]


def dataset(folder, rows, forces=False, **level):
    """A folder as `generate` leaves it."""
    folder.mkdir()
    settings = RunSettings(replace(LEVEL, **level), conformers=4, max_aos=99, forces=forces)
    values = settings.to_dict()
    shards.write_shard(folder, 0, rows, [], {"fingerprint": "f", **values})
    tally = Tally()
    statuses = [row.status for row in rows]
    tally.add(2, [row.conformer.line for row in rows], statuses, [])
    tally.add_molecules([])
    manifest = Manifest(
        fingerprint="f", settings=values, functional_definition="HF exchange",
        input=InputRecord(lines=2), unit_lines=2, status="complete", counts=tally,
    )  # fmt: skip
    shards.write_manifest(folder, manifest)
    return folder


def shifted(row, energy=0.0, **changes):
    return replace(row, energy=row.energy + energy, **changes)


@pytest.fixture
def here(monkeypatch):
    """Recompute in this process: starting others costs more than these molecules."""
    order = []

    def recompute_many(conformers, level, workers, thorough, forces):
        for i, conformer in enumerate(conformers):
            order.append((conformer.line, conformer.conformer, thorough))
            yield i, recompute(conformer, level, thorough, forces)

    monkeypatch.setattr(audit_verify, "recompute_many", recompute_many)
    return order


def test_a_true_dataset_passes(truth, tmp_path, here):
    audit = verify(dataset(tmp_path / "d", truth), 5, seed=3)
    assert audit.missed == []
    assert (len(audit.sample), audit.suspects, audit.rows) == (5, [], 8)
    report = audit.to_dict()
    assert report["passed"]
    assert report["states"] == {"same": 5, "lower": 0, "higher": 0, "not compared": 0}
    for name, values in report["errors"].items():
        assert values["count"] == 5
        assert values["max"] < (1e-5 if name in ("dipole_e_bohr", "charge_e") else 1e-2), name
    assert len({(line, c) for line, c, _ in here}) == len(here) == 5
    again = verify(dataset(tmp_path / "e", truth), 5, seed=4)
    assert {(r.line, r.conformer) for r in again.sample} != {
        (r.line, r.conformer) for r in audit.sample
    }


CHARGES = {1: (-4e-4, 2e-4, 2e-4), 2: (2e-4, -2e-4)}
"""Errors of the charges, by line."""


def test_conformers_that_coincide_pass_and_are_counted(truth, tmp_path, here):
    twin = replace(truth[0], conformer=replace(truth[0].conformer, conformer=9))
    audit = verify(dataset(tmp_path / "d", [*truth, twin]), 1)
    assert audit.missed == []
    assert audit.to_dict()["coinciding"] == 1
    assert "coincide with another of their line (allowed): 1\n" in as_text(audit)


def test_every_invariant_is_in_the_documentation():
    text = (Path(__file__).parents[3] / "docs" / "running.md").read_text()
    assert [name for name in (*ROW_CHECKS, *FILE_CHECKS) if f"| `{name}` |" not in text] == []


def test_a_known_error_is_measured_with_its_sign(truth, tmp_path, here):
    change = {"homo": 1e-6, "lumo": 3e-6}
    wrong = [
        shifted(
            row,
            2e-5 * (-1) ** i,
            homo=row.homo + change["homo"],
            lumo=row.lumo + change["lumo"],
            dipole=tuple(np.add(row.dipole, (3e-4, 0, 4e-4))),
            mo_energy=(),
            mulliken_charges=tuple(np.add(row.mulliken_charges, CHARGES[row.conformer.line])),
        )
        for i, row in enumerate(truth)
    ]
    audit = verify(dataset(tmp_path / "d", wrong, precision="float32"), 8)
    mev = 1e3 * HARTREE_TO_EV
    errors = audit.to_dict()["errors"]
    assert errors["energy_mev"]["mae"] == pytest.approx(2e-5 * mev, rel=1e-3)
    assert errors["energy_mev"]["bias"] == pytest.approx(0, abs=1e-3)
    assert errors["homo_mev"]["bias"] == pytest.approx(1e-6 * mev, rel=0.02)
    assert errors["gap_mev"]["p50"] == pytest.approx(2e-6 * mev, rel=0.02)
    assert errors["dipole_e_bohr"]["max"] == pytest.approx(5e-4, rel=1e-3)
    assert errors["charge_e"]["max"] == pytest.approx(4e-4, rel=1e-3)
    assert errors["charge_e"]["p50"] == pytest.approx(3e-4, rel=1e-3)
    # The orbital energies were left out: that is the one thing it complains about.
    (only,) = audit.missed
    assert only.startswith("orbital_energies_inconsistent: 8")


def test_bounds_are_kept_or_missed(truth, tmp_path, here):
    wrong = [shifted(row, 1e-4) for row in truth]  # 2.7 meV
    folder = dataset(tmp_path / "d", wrong, precision="float32")
    (missed,) = verify(folder, 8).missed
    assert missed == "energy_mae_mev is 2.72, the bound is 1"
    assert verify(folder, 8, bounds={"energy_mae_mev": 3.0, "gap_mae_mev": None}).missed == []
    (missed,) = verify(folder, 8, bounds={"energy_mae_mev": 3.0, "energy_max_mev": 2.0}).missed
    assert missed == "energy_max_mev is 2.72, the bound is 2"
    nothing = [shifted(row, mulliken_charges=(0.0,) * len(row.conformer.numbers)) for row in truth]
    (missed,) = verify(dataset(tmp_path / "e", nothing), 8).missed
    assert re.fullmatch(r"charge_max_e is 0\.\d+, the bound is 0.001", missed)


def test_a_wrong_state_is_suspected_checked_first_and_named(truth, tmp_path, here):
    rows = [*truth[:2], shifted(truth[2], 3.0 / HARTREE_TO_EV), *truth[3:]]
    audit = verify(dataset(tmp_path / "d", rows), 2, seed=1)
    assert here[0] == (1, 2, False)
    assert (1, 2, True) in here
    assert audit.suspected == 1
    (suspect,) = audit.suspects
    assert (suspect.state, suspect.line, suspect.conformer) == ("higher", 1, 2)
    assert suspect.energy_mev == pytest.approx(3000, rel=1e-4)
    assert suspect.deviation_ev == pytest.approx(3.0, abs=0.2)
    assert "1 of 1 suspects are in a higher state than PySCF's" in audit.missed


def test_a_row_that_is_suspect_and_drawn_is_computed_and_listed_once(truth, tmp_path, here):
    rows = [*truth[:2], shifted(truth[2], 3.0 / HARTREE_TO_EV), *truth[3:]]
    audit = verify(dataset(tmp_path / "d", rows), 99)
    assert [(row.line, row.conformer) for row in audit.suspects] == [(1, 2)]
    assert len(audit.sample) == len(truth)
    places = [(row.line, row.conformer) for row in audit.recomputed]
    assert len(places) == len(set(places)) == len(truth)
    assert sorted(here) == sorted([*((*place, False) for place in places), (1, 2, True)])
    assert as_text(audit, 9).count("line 1, conformer 2,") == len(QUANTITIES) - 1  # no forces


def test_a_lower_state_than_pyscfs_first_one_is_no_error(tmp_path, here):
    """Stretched N2: PySCF's DIIS ends in a saddle point, and the dataset's row is the better."""
    atoms = [("N", 0, 0, 0), ("N", 0, 0, 3.78)]
    good, bad = (solved(1, 0, atoms, better) for better in (True, False))
    assert good.energy < bad.energy - 0.1
    audit = verify(dataset(tmp_path / "good", [good]), 1)
    assert [row.state for row in audit.sample] == ["same"]
    assert audit.missed == []
    audit = verify(dataset(tmp_path / "bad", [bad]), 1)
    assert audit.missed == []  # PySCF's first state is the same one
    audit = verify(dataset(tmp_path / "worse", [bad]), 1, effort=Effort(thorough=True))
    assert [row.state for row in audit.sample] == ["higher"]
    wrong = shifted(bad, 1e-3)
    audit = verify(dataset(tmp_path / "wrong", [wrong]), 1)
    assert [row.state for row in audit.sample] == ["higher"]
    assert any("higher_percent is 100" in text for text in audit.missed)


def test_energies_below_pyscfs_are_errors(truth, tmp_path, here):
    """No energy lies below a minimum: such a row is wrong, however many there are."""
    low = [shifted(row, -0.1) for row in truth]
    missed = verify(dataset(tmp_path / "all", low), 4).missed
    assert any("lower_percent is 100, the bound is 0.5 (PySCF's energy" in m for m in missed)
    one = [*truth[:2], shifted(truth[2], -0.1), *truth[3:]]
    audit = verify(dataset(tmp_path / "one", one), 8)
    assert [row.state for row in audit.suspects] == ["lower"]
    assert any("lower_percent is 12.5" in m for m in audit.missed)
    assert any("1 of 1 suspects are below PySCF's energy" in m for m in audit.missed)
    assert verify(tmp_path / "one", 8, bounds={"lower_percent": 100.0}).missed == []


def test_a_shift_of_both_frontier_orbitals_is_seen(truth, tmp_path, here):
    shift = 1e-4  # 2.7 meV; the gap stays

    def moved(row):
        orbitals = tuple(e + shift for e in row.mo_energy)
        return shifted(row, homo=row.homo + shift, lumo=row.lumo + shift, mo_energy=orbitals)

    folder = dataset(tmp_path / "d", list(map(moved, truth)), precision="float32")
    assert verify(folder, 4).missed == [
        *("homo_mae_mev is 2.72, the bound is 1", "lumo_mae_mev is 2.72, the bound is 1")
    ]
    one = [*truth[:3], moved(truth[3]), *truth[4:]]
    folder = dataset(tmp_path / "e", one, precision="float32")
    missed = verify(folder, 8, bounds={"homo_max_mev": 2.0, "lumo_max_mev": 3.0}).missed
    assert missed == ["homo_max_mev is 2.72, the bound is 2"]


def test_a_molecule_that_pyscf_cannot_do_is_named_and_not_the_end(truth, tmp_path, monkeypatch):
    def recompute_many(conformers, level, workers, thorough, forces):
        for i, conformer in enumerate(conformers):
            wrong = replace(level, basis="nonsense") if conformer.line == 2 else level
            yield i, attempt(conformer, wrong, thorough, forces)

    monkeypatch.setattr(audit_verify, "recompute_many", recompute_many)
    audit = verify(dataset(tmp_path / "d", truth), 8)
    assert audit.to_dict()["states"] == {"same": 4, "lower": 0, "higher": 0, "not compared": 4}
    (missed,) = audit.missed
    assert missed.startswith("not_compared_percent is 50, the bound is 5")
    assert "PySCF failed: line 2, conformer" in audit_verify.as_text(audit)
    assert {"nonsense" in row.problem for row in audit.sample if row.line == 2} == {True}


def test_what_cannot_be_verified(truth, tmp_path, here):
    with pytest.raises(UserError, match="nothing to verify"):
        verify(dataset(tmp_path / "empty", []), 3)
    lost = [shifted(row, status="error: lost", converged=False) for row in truth]
    audit = verify(dataset(tmp_path / "lost", lost), 3)
    assert audit.sample == []
    assert audit.missed == ["there is no converged row to recompute"]
    folder = dataset(tmp_path / "other", truth, xc="b3lyp5")
    with pytest.raises(UserError, match="verify it with a release"):
        verify(folder, 3)


def test_forces_are_compared_if_the_run_has_them(truth, tmp_path, here):
    rows = []
    for row in truth[:2]:
        forces = recompute(row.conformer, LEVEL, forces=True).forces
        rows.append(replace(row, forces=forces))
    audit = verify(dataset(tmp_path / "d", rows, forces=True), 2)
    assert audit.missed == []
    assert audit.to_dict()["errors"]["force_mev_angstrom"]["max"] < 1e-6
    (x, y, z), *others = rows[0].forces
    wrong = replace(rows[0], forces=((x, y + 5e-4, z), *others))
    missed = verify(dataset(tmp_path / "e", [wrong, rows[1]], forces=True), 2).missed
    assert missed == ["force_max_mev_angstrom is 25.7, the bound is 0.1"]


def test_rows_of_the_sample_are_turned(truth, tmp_path, here):
    """Hartree-Fock has no grid, so nothing changes; each row takes two more calculations."""
    forces = [recompute(row.conformer, LEVEL, forces=True).forces for row in truth]
    rows = [replace(row, forces=f) for row, f in zip(truth, forces, strict=True)]
    folder = dataset(tmp_path / "d", rows, forces=True)
    audit = verify(folder, 3, effort=Effort(turned=2))
    assert audit.missed == []
    assert len(here) == 3 + 2 * 2
    places = [(row.line, row.conformer) for row in audit.sample[:2]]
    assert [(row.line, row.conformer) for row in audit.turned] == places
    noise = audit.to_dict()["turning"]
    assert noise["energy_mev"]["count"] == noise["force_mev_angstrom"]["count"] == 2
    assert noise["energy_mev"]["max"] < 1e-5
    assert "spread over three orientations, 2 rows, energy_mev: mean" in as_text(audit)
    assert verify(folder, 3).to_dict()["turning"] == {}


def test_the_command(truth, tmp_path, capsys):
    """With a real PySCF process."""
    rows = [*truth[:3], shifted(truth[3], 3e-4, converged=False), *truth[4:]]
    folder = dataset(tmp_path / "d", rows)
    assert main(["verify", str(folder), "--sample", "2", "--workers", "1"]) == 1
    text = capsys.readouterr().out
    assert "status_contradicts_converged: 1 (line 1, conformer 3)" in text
    assert "worst rows, gap_mev:" in text
    report = json.loads((folder / "verify.json").read_text())
    assert not report["passed"]
    assert len(report["sample"]) == 2
    assert matplotlib.image.imread(folder / "verify.png")[..., :3].std() > 0.05
    assert main(["verify", str(folder), "--sample", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err


def test_rows_are_named_by_their_ids(truth, tmp_path, here):
    named = replace(truth[0], conformer=replace(truth[0].conformer, id="w1", smiles=""))
    text = as_text(verify(dataset(tmp_path / "d", [named, *truth[1:]]), 99), 99)
    assert "line 1, conformer 0, w1, same state" in text
    assert "line 2, conformer 0, FH, same state" in text


def test_files_of_an_audit(truth, tmp_path, here):
    audit = verify(dataset(tmp_path / "d", truth), 2)
    paths = write_audit(audit, tmp_path)
    assert [path.name for path in paths] == ["verify.json", "verify.png"]
    assert json.loads(paths[0].read_text()) == audit.to_dict()
