"""The table of a card on what its labels are worth."""

import json

import pytest
from fake_runs import CALM, fake_run

from qm1b.errors import UserError
from qm1b.folder import shards
from qm1b.folder.manifest.manifest import Manifest
from qm1b.report.card.facts import Statements, gather
from qm1b.report.card.text import card
from qm1b.report.card.worth import of_labels

NOT_MEASURED = "not measured: run `qm1b verify`"
ONE = {"count": 4, "mae": 0.25, "bias": 0.1, "p50": 0.2, "p95": 0.75, "p99": 0.9, "max": 1.5}


@pytest.fixture
def folder(tmp_path):
    return fake_run(tmp_path, CALM, forces=True)[0]


def verified(folder, **changes):
    """Leave a `verify.json` in the folder."""
    facts = gather(folder)
    assert isinstance(facts.manifest, Manifest)
    audit = {
        "fingerprint": facts.manifest.fingerprint, "rows": facts.stats.rows, "seed": 0,
        "sample": [], "reference": "PySCF", "states": {}, "invariants": {}, "suspected": 0,
        "passed": True, "missed": [], "errors": {"energy_mev": ONE, "force_mev_angstrom": ONE},
        "turning": {"energy_mev": ONE, "force_mev_angstrom": ONE},
    }  # fmt: skip
    (folder / shards.VERIFY_JSON).write_text(json.dumps(audit | changes))
    return folder


def table(folder):
    """The lines of the table by their first cell, and the other cells."""
    text = card(gather(folder), Statements("x"), [])
    lines = text.split("### What these labels are worth\n")[1].split("\n### ")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return {first: others for first, *others in cells[2:]}


def test_what_needs_no_reference_is_always_there(folder):
    lines = table(folder)
    assert lines["net force"][:2] == ["meV/Å", "8"]
    assert float(lines["net force"][-1]) < 1e-3
    assert lines["torque"][0] == "meV"
    assert [lines[name][1] for name in list(lines)[2:]] == [NOT_MEASURED] * 4


def test_verify_measures_the_rest(folder):
    lines = table(verified(folder))
    assert len(lines) == 6
    for name in list(lines)[2:]:
        assert lines[name][1:] == ["4", "0.25", "0.75", "1.5"]


def test_an_audit_of_an_earlier_version_turned_nothing(folder):
    verified(folder)
    audit = json.loads((folder / shards.VERIFY_JSON).read_text())
    del audit["turning"]
    (folder / shards.VERIFY_JSON).write_text(json.dumps(audit))
    measured = [line.what for line in of_labels(gather(folder)) if not line.rows]
    assert measured == [f"{what}, spread over three orientations" for what in ("energy", "forces")]


def test_an_audit_of_other_rows_does_not_count(folder):
    lines = table(verified(folder, rows=3))
    assert [lines[name][1] for name in list(lines)[2:]] == [NOT_MEASURED] * 4


def test_a_run_without_forces_has_lines_of_energies_alone(finished):
    assert [line.what.split(",")[0] for line in of_labels(gather(finished[0]))] == ["energy"] * 2


@pytest.mark.parametrize("changes", [{"turning": 3}, {"turning": {"energy_mev": {"count": 2}}}])
def test_a_damaged_audit_is_a_sentence(folder, changes):
    with pytest.raises(UserError, match="not what qm1b verify writes"):
        table(verified(folder, **changes))
