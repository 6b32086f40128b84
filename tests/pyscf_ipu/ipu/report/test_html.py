"""The report: one safe file, and a page whose scripts run in a real browser."""

import dataclasses
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest
from sample_profile import HOSTILE_NAME, bow_profile, bulk_step, compute, scf_profile, sync

from pyscf_ipu.ipu import BOW, Quantity, simulate
from pyscf_ipu.ipu.profile.data import Repeat
from pyscf_ipu.ipu.report.html import encode_program, page

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no chromium, chromium-browser or google-chrome on the path"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=3000",
    "--window-size=1400,2400",
)


class Page(HTMLParser):
    """Elements by tag with their attributes, and the text of the scripts."""

    def __init__(self, text):
        super().__init__()
        self.found, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.found and self.found[-1][0] == "script" and self.scripts:
            self.scripts[-1] += data

    def attributes(self, tag):
        return [a for name, a in self.found if name == tag]


def data_of(text):
    start = text.index('<script type="application/json" id="data">')
    body = text[text.index(">", start) + 1 :]
    return json.loads(body[: body.index("</script>")])


def opened(tmp_path, profile, other=None, fragment="", script=""):
    """The page as the browser has it after its scripts ran, and the page's own findings.

    script  what the reader does, as JavaScript that runs after the page's own.
    """
    path = tmp_path / "report.html"
    profile.to_html(path, other)
    if script:
        path.write_text(path.read_text().replace("</body>", f"<script>{script}</script></body>"))
    run = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'browser'}", "--dump-dom",
         f"{path.as_uri()}{fragment}"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    dom = Page(run.stdout)
    root = dom.attributes("html")[0]
    assert "data-error" not in root, root
    assert root.get("data-ready") == "true"
    return run.stdout, dom, root


def test_file_is_alone_and_keeps_its_data():
    profile = scf_profile()
    text = page(profile, bow_profile())
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", text)
    assert re.findall(r"https?://[^\s\"']+", text) == ["http://www.w3.org/2000/svg"]
    assert "default-src 'none'" in text
    data = data_of(text)
    expected = json.loads(profile.to_json())
    assert {**data["profile"], "program": expected["program"]} == expected
    assert data["comparison"]["names"] == ["gc200, 1 IPU", "bow, 1 IPU"]
    assert data_of(page(profile))["comparison"] is None


def test_hostile_names_stay_data():
    text = page(scf_profile(target=HOSTILE_NAME))
    tags = Page(text)
    assert "b" not in {tag for tag, _ in tags.found}
    assert len(tags.attributes("script")) == 3
    steps = data_of(text)["program"]["steps"]
    assert HOSTILE_NAME in {s["name"] for s in steps}
    assert data_of(text)["profile"]["target"] == HOSTILE_NAME


def test_numbers_that_json_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="JSON"):
        page(scf_profile(program=(compute("v", "", float("inf"), float("inf")),)))


def test_equal_steps_are_written_once():
    step, gap = compute("v", "s", 3, 5), sync("s")
    found = encode_program((step, Repeat(7, (gap, step, Repeat(2, (gap,), "in")), "out"), step))
    assert [s["name"] for s in found["steps"]] == ["v", "sync"]
    assert found["nodes"] == [0, [7, "out", [1, 0, [2, "in", [1]]]], 0]


def test_size_follows_the_program_as_written_not_as_run():
    short = scf_profile()
    long = scf_profile(program=(Repeat(1000, short.program, "dynamics"),))
    assert sum(n for _, n in long.steps()) > 10**7
    assert len(page(long)) < len(page(short)) + 1000


def test_modules_stand_behind_what_they_import():
    script = Page(page(scf_profile())).scripts[-1]
    found = re.findall(r"^modules\.(\w+) =|\} = modules\.(\w+);$", script, re.MULTILINE)
    made = [made for made, _ in found if made]
    assert sorted(made) == [
        "charts", "gantt", "live", "page", "program", "report", "tables", "timeline", "view",
    ]  # fmt: skip
    for i, (_, used) in enumerate(found):
        assert not used or (used, "") in found[:i]
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)


@needs_browser
def test_scripts_run_in_a_browser(tmp_path):
    text, dom, root = opened(tmp_path, scf_profile())
    assert int(root["data-boxes"]) > 100
    assert int(root["data-bars"]) > 30
    ids = {a.get("id") for a in dom.attributes("section")}
    assert {"timeline", "stages", "vertices", "tiles", "memory", "program", "notes"} <= ids
    assert "comparison" not in ids
    drawn = text[: text.index('<script type="application/json"')]
    assert ">2 ops<" in drawn
    assert drawn.count(", at least<") == 2
    assert "Out of memory on 1 of 1,472 tiles: 1471" in text
    assert len(dom.attributes("polygon")) == 5 + 1 + 1
    assert "b" not in {tag for tag, _ in dom.found}


@needs_browser
def test_the_operations_have_a_card(tmp_path):
    work = dataclasses.replace(compute("v", "xc", 1e6, 3e6), flops=0.5 * 32 * 1472 * 1e6)
    text, _, _ = opened(tmp_path, scf_profile(program=(work,)))
    drawn = text[: text.index('<script type="application/json"')]
    assert "Floating-point operations" in drawn
    assert ">23.6 G<" in drawn
    assert ">50.0 % of the matrix units' peak, of low cycles<" in drawn


@needs_browser
def test_comparison_in_a_browser(tmp_path):
    text, dom, _ = opened(tmp_path, scf_profile(), bow_profile())
    assert {"comparison"} <= {a.get("id") for a in dom.attributes("section")}
    assert '<span class="better">0.500</span>' in text


@needs_browser
def test_zoomed_by_the_address(tmp_path):
    text, _, root = opened(tmp_path, scf_profile(), fragment="#from=1000&to=200000")
    assert "1,000 to 200,000: 199,000 cycles" in text
    assert 3 <= int(root["data-boxes"]) < 100


PRESS = 'dispatchEvent(new KeyboardEvent("keydown", {{key: "{}"}}));'
POINT = """
const canvas = document.querySelector("canvas.zoomable");
const corner = canvas.getBoundingClientRect();
const inFirstStep = {{ clientX: corner.left + 110, clientY: corner.top + 70, bubbles: true }};
canvas.dispatchEvent(new {});
"""


@needs_browser
@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (PRESS.format("+"), "250 to 750: 500 cycles"),
        (PRESS.format("0"), "0 to 1,200: 1,200 cycles"),
        (POINT.format('WheelEvent("wheel", {...inFirstStep, deltaY: -100})'), "779 cycles"),
        (POINT.format('PointerEvent("pointermove", inFirstStep)'), "200 to 900 cycles; 150 ns"),
        (POINT.format('MouseEvent("click", inFirstStep)'), "<strong>first (compute)</strong>"),
    ],
    ids=["key +", "key 0", "wheel", "pointer", "click"],
)
def test_reader_moves_through_the_timeline(tmp_path, action, shown):
    rounds = Repeat(10, (compute("v", "xc", 100, 300),), "round")
    profile = scf_profile(program=(compute("first", "eri", 200, 900), rounds))
    # A drawing waits for the next frame, which a browser without a screen need not show; one for
    # a new size does not wait.
    script = action + 'dispatchEvent(new Event("resize"));'
    text, _, _ = opened(tmp_path, profile, fragment="#from=0&to=1000", script=script)
    drawn = text[: text.index('<script type="application/json"')]
    assert shown in drawn


@needs_browser
def test_drawing_is_bounded_by_the_pixels(tmp_path):
    inner = Repeat(1000, bulk_step("v", "eri", 200, 300), "inner")
    program = (Repeat(1000, (inner, *bulk_step("w", "xc", 5, 9)), "outer"),)
    many = tuple(compute(f"v{k % 50}", "eri", 1 + k % 7, 9) for k in range(4000))
    for steps in (program, many, (*many, Repeat(50, many))):
        _, _, root = opened(tmp_path, scf_profile(program=steps))
        assert 0 < int(root["data-boxes"]) < 20 * 1400


@needs_browser
def test_a_mean_number_of_turns_is_drawn_to_its_end(tmp_path):
    """A loop, its two whole turns of two steps, half a turn in two lanes, and a step."""
    loop = Repeat(2.5, (compute("v", "eri", 60, 90), sync("eri")), "sweep")
    profile = scf_profile(program=(loop, compute("w", "xc", 35, 40)))
    text, _, root = opened(tmp_path, profile)
    assert "0 to 500: 500 cycles" in text
    assert int(root["data-boxes"]) == 1 + 2 * 2 + 2 + 1


def live_at(lifetimes, step):
    return [name for name, _, first, end, *_ in lifetimes if first <= step < end]


@needs_browser
def test_the_reader_chooses_a_step_and_sees_what_is_live(tmp_path):
    """At the fullest step first; then at the one under the pointer, and one step on."""

    def fn(x):
        return jnp.sum(jnp.exp(x) * x) + x

    _, profile = simulate(fn, BOW)(np.ones(1472 * 64, np.float32))
    memory = profile.to_dict()["memory"]
    timeline, lifetimes = memory["timeline"], memory["lifetimes"]
    most = max(bytes for _, bytes in timeline)
    peak = [bytes for _, bytes in timeline].index(most)
    last = len(timeline) - 1
    assert set(live_at(lifetimes, peak)) != set(live_at(lifetimes, last))
    slide = "const s = document.querySelector('input[type=range]'); s.value = '{}';"
    slide += "s.dispatchEvent(new Event('input'));"
    for script, step in (("", peak), (slide.format(last), last), (slide.format(0), 0)):
        text, _, root = opened(tmp_path, profile, script=script)
        assert int(root["data-live"]) == len(live_at(lifetimes, step))
        shown = re.search(r"step ([\d,]+), (.*?): (.*?) on the fullest tile", text)
        assert shown is not None
        assert int(shown[1].replace(",", "")) == step
        assert shown[2] == timeline[step][0]


@needs_browser
def test_what_has_no_place_is_said(tmp_path):
    tiny = dataclasses.replace(BOW, executable_memory_bytes=Quantity(8, "B", "estimated", "a test"))
    _, profile = simulate(jnp.exp, tiny)(np.ones(64, np.float32))
    text, _, _ = opened(tmp_path, profile)
    drawn = text[: text.index('<script type="application/json"')]
    assert "More code than can run on " in drawn
    assert "Too little interleaved memory" not in drawn
    assert "8 B that can run" in drawn


@needs_browser
def test_an_empty_program_is_a_page_too(tmp_path):
    text, _, _ = opened(tmp_path, scf_profile(program=()))
    assert "The program takes no cycles." in text


@needs_browser
def test_balance_and_bounds_are_shown(tmp_path):
    profile = scf_profile(program=(compute("v", "eri", 10, 20, balance=0.25),), unknown_ops={})
    text, _, _ = opened(tmp_path, profile)
    drawn = text[: text.index('<script type="application/json"')]
    assert ">0.25<" in drawn
    assert ", at least<" not in drawn
