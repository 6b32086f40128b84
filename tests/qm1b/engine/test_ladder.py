"""The retry ladder: what is tried, in which order, and what a row says of it."""

from dataclasses import replace

import numpy as np
import pytest
from fake_engine import Solver
from fake_runs import conformer, fake_run, row, settings

from pyscf_ipu.base.errors import TooLarge
from pyscf_ipu.molecule.molecule import Molecule
from qm1b.commands.ending import outcome
from qm1b.engine import ladder
from qm1b.engine.ladder import LADDER, SMALL_GAP_HARTREE, climb, ladder_for
from qm1b.folder import shards
from qm1b.settings import PRESETS


def lines(conformers):
    return [c.line for c in conformers]


def ended(good):
    return "converged" if good else "not_converged"


def run_of(outcomes, gap=0.05, homo=0.0):
    """An engine whose molecule of line i converges in the attempts named in outcomes[i]."""
    asked = []

    def run(conformers, rung):
        name = rung.name if rung else "plain"
        asked.append((name, lines(conformers)))
        good = [name in outcomes[c.line] for c in conformers]
        values = {"homo": homo, "lumo": gap, "cycles": len(asked)}
        return [row(c, ended(g), **values) for c, g in zip(conformers, good, strict=True)]

    return run, asked


def test_only_what_is_open_goes_on():
    run, asked = run_of([{"plain"}, {"damped"}, {"second_order"}, set()])
    rows = climb(run, [conformer(i) for i in range(4)], LADDER)
    assert asked == [
        ("plain", [0, 1, 2, 3]),
        ("damped", [1, 2, 3]),
        ("shifted", [2, 3]),
        ("second_order", [2, 3]),
    ]
    assert [r.status for r in rows] == ["converged"] * 3 + ["not_converged"]
    assert [r.attempts for r in rows[:2]] == [
        "plain:converged:1",
        "plain:not_converged:1 damped:converged:2",
    ]
    assert rows[3].cycles == 1  # nothing helped: the plain attempt is what is kept
    assert rows[3].attempts.count("not_converged") == 4


def test_no_level_shift_across_a_wide_gap():
    run, asked = run_of([set()], gap=2 * SMALL_GAP_HARTREE)
    climb(run, [conformer(0)], LADDER)
    assert [name for name, _ in asked] == ["plain", "damped", "second_order"]


def test_ill_conditioned_goes_straight_to_float64():
    asked = []

    def run(conformers, rung):
        asked.append((rung.name if rung else "plain", lines(conformers)))
        good = ("second_order", "damped")
        bad = ("ill_conditioned", "not_converged")
        statuses = [
            bad[c.line] if rung is None else ended(rung.name == good[c.line]) for c in conformers
        ]
        return [row(c, status, cycles=9) for c, status in zip(conformers, statuses, strict=True)]

    rows = climb(run, [conformer(i) for i in range(2)], LADDER)
    assert asked == [("plain", [0, 1]), ("damped", [1]), ("second_order", [0])]
    assert [r.status for r in rows] == ["converged"] * 2
    assert rows[0].attempts == "plain:ill_conditioned:9 second_order:converged:9"


def test_one_that_ended_far_from_any_solution_gets_a_shift():
    run, asked = run_of([set()], gap=float("nan"), homo=float("nan"))
    climb(run, [conformer(0)], LADDER)
    assert "shifted" in [name for name, _ in asked]


def test_one_without_orbitals_is_no_small_gap():
    run, asked = run_of([set()], gap=float("nan"))
    climb(run, [conformer(0)], LADDER)
    assert "shifted" not in [name for name, _ in asked]


def test_ladder_of_a_run():
    assert ladder_for(settings(retry=False)) == ()
    assert [r.name for r in ladder_for(settings())] == ["damped", "shifted", "second_order"]


@pytest.mark.parametrize("retry", [True, False])
def test_rows_say_what_was_tried(tmp_path, retry):
    out, _ = fake_run(tmp_path, "S\n[SiH4]\nCCl\nC\n", conformers=1, retry=retry)
    (path,) = shards.shards(out)
    shard = shards.read_shard(path)
    attempts = dict(zip(shard["smiles"], shard["attempts"], strict=True))
    assert attempts["C"] == "plain:converged:9"
    if retry:
        assert attempts["S"] == "plain:not_converged:50 damped:converged:9"
        assert attempts["[SiH4]"].endswith("second_order:converged:9")
    else:
        assert attempts["S"] == "plain:not_converged:50"
    assert shard["converged"].sum() == (3 if retry else 1)


def test_a_rung_that_raises_leaves_the_plain_result_and_its_neighbours_alone():
    def run(conformers, rung):
        if rung and rung.name == "damped" and 0 in lines(conformers):
            raise RuntimeError("no such eigenvalue")
        return [row(c, ended(rung is not None), cycles=7) for c in conformers]

    rows = climb(run, [conformer(i) for i in range(2)], LADDER[:1])
    assert [r.status for r in rows] == ["not_converged", "converged"]
    assert rows[0].attempts == "plain:not_converged:7 damped:error:0"
    assert rows[1].attempts == "plain:not_converged:7 damped:converged:7"


def test_float64_that_raises_or_does_not_fit_is_no_error_of_the_row(tmp_path):
    out, summary = fake_run(tmp_path, "S\n[SiH4]\n", conformers=1, factory="fake_engine:Fragile64")
    (path,) = shards.shards(out)
    shard = shards.read_shard(path)
    assert shard["status"].tolist() == ["not_converged"] * 2
    assert all(text.endswith(" second_order:error:0") for text in shard["attempts"])
    expected = {
        "the retry second_order raised RuntimeError": 1,
        "the retry second_order raised TooLarge": 1,
    }
    assert shards.read_manifest(out).runs[-1]["troubles"] == expected
    assert "1 row: the retry second_order raised TooLarge; see workers.log" in outcome(summary)


def test_an_error_of_the_program_is_no_failed_retry():
    def run(conformers, rung):
        if rung:
            raise TypeError("no such argument")
        return [row(c, "not_converged") for c in conformers]

    with pytest.raises(TypeError):
        climb(run, [conformer(0)], LADDER)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_fixed_number_of_cycles_is_not_for_the_rung_of_several_scfs(tmp_path, precision):
    """The engine refuses the two together; the rung would end as an error."""
    level = replace(PRESETS["qm1b"], fixed_cycles=5, precision=precision)
    out, _ = fake_run(tmp_path, "Cl\n", conformers=1, level=level)
    (path,) = shards.shards(out)
    attempts = shards.read_shard(path)["attempts"].tolist()
    assert attempts[0].endswith(" second_order:not_converged:50")


@pytest.mark.parametrize("coarse", [False, True])
def test_float64_must_have_room_for_the_padding_of_the_run(coarse):
    class OnlyFine(Solver):
        def shape(self, molecule, coarse=False):
            if coarse and self.precision == "float64":
                raise TooLarge("too large in float64")
            return super().shape(molecule, coarse)

    def engine_at(precision, *, stability=False):
        return OnlyFine(basis="sto-3g", precision=precision or "float32")

    silane = Molecule([14, 1, 1, 1, 1], np.zeros((5, 3)))
    run = ladder.run_of(engine_at(None).shape(silane, coarse), engine_at, coarse=coarse)
    who = conformer(1, silane.numbers, silane.positions)
    (last,) = climb(run, [who], LADDER[-1:])
    assert last.attempts.split()[-1] == f"second_order:{'error:0' if coarse else 'converged:9'}"
