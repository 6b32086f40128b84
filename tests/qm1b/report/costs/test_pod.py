"""The price of a dataset on a Pod: from the prices of shapes, which are tested elsewhere."""

import dataclasses
import json
from threading import Barrier
from types import SimpleNamespace

import pytest

from pyscf_ipu.ipu import target
from pyscf_ipu.ipu.profile.data import Cycles
from qm1b.cli import main
from qm1b.errors import UserError
from qm1b.report.costs import pod, run_price, shape_price
from qm1b.report.costs.pod import PodPlan
from qm1b.report.costs.pod_text import as_text
from qm1b.report.costs.shape_price import ShapePrice, ShapeToPrice, check_priced, price, priced
from qm1b.screening.screen import Candidate
from qm1b.settings import PRESETS

pytestmark = pytest.mark.usefixtures("blank_pictures")

KEYS = {
    "target", "replicas", "rows", "conformers_per_second", "ipu_hours", "days", "shapes",
    "host_bound",
}  # fmt: skip
SMILES = "CCO\nCCC\nCCCO\nC1=CC=CC=C1\nnonsense\n"


def shape(molecules, low, high, **changes):
    seconds = Cycles(low, high)
    cycles = Cycles(low * 1.85e9, high * 1.85e9)
    values = {"max_tile_bytes": 1, "fits": True, "unknown_ops": {}} | changes
    return ShapePrice("shape", molecules, "C", cycles, seconds, **values)


def test_hours_follow_from_the_mean_over_molecules():
    shapes = (shape(3, 0.01, 0.1), shape(1, 0.05, 0.5))  # 0.02 and 0.2 s in the mean
    plan = PodPlan("bow-pod16", 16, 3600.0 * 80, shapes, float("inf"))
    assert plan.per_second.low == pytest.approx(80)
    assert plan.per_second.high == pytest.approx(800)
    assert plan.ipu_hours.high == pytest.approx(16)
    assert plan.ipu_hours.low == pytest.approx(1.6)
    assert plan.days.high == pytest.approx(1 / 24)
    assert not plan.host_bound


def test_a_slow_host_sets_the_rate():
    plan = PodPlan("bow-pod16", 16, 100.0, (shape(1, 0.01, 0.1),), 200.0)
    assert plan.host_bound
    assert (plan.per_second.low, plan.per_second.high) == (160.0, 200.0)
    assert "host cannot feed" in as_text(plan)


def test_what_does_not_fit_is_said():
    plan = PodPlan("bow", 1, 1.0, (shape(1, 1.0, 2.0, fits=False),), float("inf"))
    assert "does not fit" in as_text(plan)


@pytest.fixture
def cheap(monkeypatch):
    """A price that takes no time: cycles by the number of electrons."""
    from pyscf_ipu.ipu.profile.data import Cycles

    def price(molecule, level, target, replicas, coarse):
        cycles = Cycles(1e6 * molecule.n_electrons, 4e6 * molecule.n_electrons)
        memory = SimpleNamespace(max_tile_bytes=100, fits=True)
        wall = cycles * (1 / 1.85e9)
        return SimpleNamespace(cycles=cycles, wall_seconds=wall, memory=memory, unknown_ops={})

    for module in (pod, run_price):
        monkeypatch.setattr(module, "price", price)


def test_the_command_prices_every_shape_once(cheap, tmp_path, capsys):
    file, out = tmp_path / "some.smi", tmp_path / "plan.json"
    file.write_text(SMILES)
    options = ["--ipu", "bow-pod16", "--conformers", "10", "--json", str(out)]
    assert main(["plan", str(file), *options]) == 0
    found = json.loads(out.read_text())
    assert set(found) == KEYS
    assert (found["target"], found["replicas"], found["rows"]) == ("bow-pod16", 16, 40)
    assert sum(s["molecules"] for s in found["shapes"]) == 4
    assert sum(s["share"] for s in found["shapes"]) == pytest.approx(1)
    for name in ("conformers_per_second", "ipu_hours", "days"):
        assert 0 < found[name]["low"] < found[name]["high"]
    assert "40,000 IPU-hours" in capsys.readouterr().out


def test_molecules_scale_the_rows(cheap, tmp_path):
    file, out = tmp_path / "some.smi", tmp_path / "plan.json"
    file.write_text(SMILES)
    options = ["--ipu", "bow-pod4", "--molecules", "1e6", "--conformers", "1000"]
    assert main(["plan", str(file), *options, "--json", str(out)]) == 0
    assert json.loads(out.read_text())["rows"] == 1e9


def test_given_geometries_are_one_row_each_and_need_no_host(cheap, tmp_path, capsys):
    file = tmp_path / "water.xyz"
    file.write_text("3\n\nO 0 0 0\nH 0 0.76 0.59\nH 0 -0.76 0.59\n")
    assert main(["plan", str(file), "--ipu", "bow-pod16"]) == 0
    out = capsys.readouterr().out
    assert "1 rows on bow-pod16, 16 IPUs" in out
    assert "host" not in out
    assert "1 molecule ..." in out
    assert main(["plan", str(file), "--ipu", "bow", "--molecules", "10"]) == 0
    out = capsys.readouterr().out
    assert "10 rows on bow, 1 IPU, a conformer" in out
    assert "inf" not in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--ipu", "pod"], "bow-pod16"),
        (["--json", "--molecules", "10"], "--ipu"),
        (["--molecules", "nan"], "--molecules"),
        (["--ipu", "bow", "--price-per-hour", "1"], "--price-per-hour"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(options, says, capsys):
    assert main(["plan", *options]) == 2
    assert says in capsys.readouterr().err


def test_a_level_in_float64_has_no_price_and_the_error_says_what_has_one():
    with pytest.raises(UserError, match=r"precision='mixed', has no price: choose a preset in"):
        pod.pod_plan([Candidate(1, "CCO", 0)], PRESETS["qm9"], target("bow"), 1.0)


def test_a_host_that_fits_has_no_rate():
    level = dataclasses.replace(PRESETS["qm1b"], jk="ri")
    with pytest.raises(UserError, match="the host makes a fit for every conformer"):
        pod.pod_plan([Candidate(1, "CCO", 0)], level, target("bow"), 1.0)


@pytest.mark.slow
def test_a_run_is_priced_into_its_manifest_and_card(cheap, partial):
    from qm1b.report.costs.run_price import price_run

    out = partial
    found = price_run(out, target("bow"), lambda _: None)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["runs"][-1]["ipu_price"] == json.loads(json.dumps(found))
    assert found["rows"] == manifest["counts"]["rows"]
    assert 0 < found["ipu_seconds"]["low"] < found["ipu_seconds"]["high"]
    assert {s["target"] for s in found["shapes"]} == {"bow"}
    assert main(["card", str(out)]) == 0
    card = (out / "card" / "README.md").read_text()
    assert "on a simulated IPU (bow)" in card


def test_shapes_are_priced_side_by_side_and_stay_in_order(monkeypatch):
    monkeypatch.setattr(shape_price, "n_cores", lambda: 2)
    both, begun = Barrier(2, timeout=10), []

    def how(molecule):
        both.wait()  # ends only if another one is under way
        cycles = Cycles(molecule, 2 * molecule)
        memory = SimpleNamespace(max_tile_bytes=1, fits=True)
        return SimpleNamespace(cycles=cycles, wall_seconds=cycles, memory=memory, unknown_ops={})

    wanted = [ShapeToPrice(f"shape {n}", n, lambda n=n: (f"C{n}", float(n))) for n in (1, 2, 3, 4)]
    found = priced(wanted, how, lambda x: begun.append(x.label))
    assert [(x.label, x.molecules, x.sample, x.cycles.low) for x in found] == [
        (f"shape {n}", n, f"C{n}", n) for n in (1, 2, 3, 4)
    ]
    assert sorted(begun) == [x.label for x in found]


@pytest.mark.long
@pytest.mark.parametrize("jk", ["exact", "ri"])
def test_a_real_price(jk):
    from pyscf_ipu.molecule.molecule import Molecule

    level = dataclasses.replace(PRESETS["qm1b"], jk=jk)
    check_priced(level)
    found = price(Molecule.from_smiles("O", seed=0), level, target("bow"), 1, False)
    assert found.unknown_ops == {}
    assert 1e5 < found.cycles.low < 5e6


@pytest.mark.parametrize("level", [["--precision", "mixed"], ["--precision", "float64"]])
def test_a_level_without_a_price_is_refused_before_anything_is_computed(level, tmp_path, capsys):
    source = tmp_path / "in.smi"
    source.write_text("O\n")
    out = tmp_path / "out"
    assert main(["generate", str(source), "--out", str(out), "--price", "bow", *level]) == 2
    assert "has no price" in capsys.readouterr().err
    assert not out.exists()
