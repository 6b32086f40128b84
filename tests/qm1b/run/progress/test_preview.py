"""A run as a sample of its input shows it."""

import pytest

from qm1b import inputs
from qm1b.engine.factory import DEFAULT, ao_counter, build
from qm1b.engine.price import Prices
from qm1b.inputs import first_pass
from qm1b.run.progress.preview import Preview, too_large
from qm1b.run.progress.work import PricedWork
from qm1b.screening.limits import Limits
from qm1b.settings import PRESETS, RunSettings

SORTED = "".join(f"{'C' * n}\n" for n in range(1, 41))


@pytest.fixture
def looked(tmp_path):
    """A function: what is known of an input at a level, before a run."""

    def look(text, level=PRESETS["qm1b"], **changes):
        path = tmp_path / "a.smi"
        path.write_text(text)
        settings = RunSettings(level, **{"conformers": 2, "max_aos": 128} | changes)
        source = inputs.summarise(path, settings)
        limits = Limits(
            ao_counter(build(DEFAULT, settings)), settings.max_aos, settings.keep_charged
        )
        preview = Preview.of(source, settings, limits)
        return preview, too_large(preview, source, settings, limits=limits)

    return look


def test_larger_molecules_cost_more_and_dropped_ones_nothing(looked):
    preview, _ = looked(SORTED + "C\n[Na+].[Cl-]\n", max_aos=9999)
    seconds = preview.line_seconds
    assert seconds[:40] == sorted(seconds[:40])
    assert seconds[40:] == [0.0, 0.0]
    assert seconds[39] > 100 * seconds[0] > 0
    assert sum(preview.shapes.values()) == 80


def test_what_is_ahead_is_priced_by_what_is_ahead(looked):
    preview, _ = looked(SORTED, max_aos=9999)
    whole = preview.seconds_of(40)
    assert whole == pytest.approx(sum(preview.line_seconds))
    assert preview.seconds_of(20, after=20) == pytest.approx(sum(preview.line_seconds[20:]))
    assert preview.seconds_of(20, after=20) > 0.8 * whole
    assert preview.seconds_of(1, after=40) == preview.line_seconds[-1]


def test_a_sample_stands_for_the_whole(looked, monkeypatch):
    whole, _ = looked(SORTED * 20, max_aos=9999)
    monkeypatch.setattr(first_pass, "MOST_SAMPLED", 100)
    part, _ = looked(SORTED * 20, max_aos=9999)
    assert whole.is_whole
    assert not part.is_whole
    assert part.n_lines == whole.n_lines == 800


def test_too_large_molecules_are_counted_with_what_would_compute_them(looked, monkeypatch):
    monkeypatch.setattr("pyscf_ipu.solver.platform.available_bytes", lambda: 24 * 2**30)
    _, text = looked(SORTED)
    assert text.startswith("22 of 40 lines will be dropped as too_large: more atomic orbitals than")
    assert "--max-aos" in text
    assert looked("C\nCC\n")[1] == ""
    _, text = looked("C" * 9 + "\nC\n", PRESETS["qm9"].changed(basis="def2-tzvp"), max_aos=150)
    assert text.startswith("1 of 2 lines will be")
    assert "--jk ri --max-aos" in text
    monkeypatch.setattr("pyscf_ipu.solver.platform.available_bytes", lambda: 2**20)
    assert looked(SORTED, max_aos=9)[1].endswith("need a machine with more memory")


def test_of_a_long_input_it_is_a_share(looked, monkeypatch):
    monkeypatch.setattr(first_pass, "MOST_SAMPLED", 16)
    text = looked(SORTED * 3)[1]
    assert text.startswith("about ")
    assert "% of the lines" in text


def test_the_level_decides_the_price(looked):
    octane = [6] * 8 + [1] * 18
    price = {
        name: Prices(level, forces=False, coarse=False).seconds(octane)
        for name, level in PRESETS.items()
    }
    assert price["qm1b"] < price["ani1x"] < price["spice"]
    forces = Prices(PRESETS["qm1b"], forces=True, coarse=False).seconds(octane)
    assert forces > price["qm1b"]
    assert Prices(PRESETS["qm1b"], forces=False, coarse=False).shape([99]) is None


def test_work_goes_from_begun_to_done():
    work = PricedWork()
    assert work.left(7, 50) == 50.0
    assert work.programs_ahead == 0
