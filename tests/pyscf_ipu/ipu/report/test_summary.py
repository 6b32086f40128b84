"""The summary in the terminal: every section, true numbers, aligned and narrow."""

from dataclasses import replace

import numpy as np
import pytest
from sample_profile import OVERFLOWING_TILE, compute, scf_memory, scf_profile

from pyscf_ipu.ipu.profile.data import Repeat
from pyscf_ipu.ipu.profile.regions import Memory
from pyscf_ipu.ipu.profile.text import bar, clip, data_size, duration, table

SECTIONS = (
    "Target",
    "Program",
    "Memory Usage",
    "Execution",
    "Cycles by stage",
    "Cycles by vertex type",
    "Provenance of the cycles",
    "Operations without a cost rule, not in the total",
    "Notes",
)


def section(text, title):
    """The lines of one section, its title not included."""
    lines = text.splitlines()
    start = lines.index(title) + 1
    ends = [i for i in range(start, len(lines)) if lines[i][:1] not in ("", " ")]
    return lines[start : min(ends, default=len(lines))]


def line(text, title, label):
    return next(x for x in section(text, title) if x.strip().startswith(label))


def test_all_sections_in_order_within_100_columns():
    text = scf_profile().summary()
    lines = text.splitlines()
    assert [x for x in lines if x in SECTIONS] == list(SECTIONS)
    assert max(len(x) for x in lines) <= 100
    assert not any(x != x.rstrip() for x in lines)


def test_cycles_are_those_of_the_profile():
    profile = scf_profile()
    text = profile.summary()
    total = line(text, "Execution", "Total cycles, at least")
    assert total.split()[-2:] == [f"{profile.cycles.low:,.0f}", f"{profile.cycles.high:,.0f}"]
    eri = profile.total_by("stage")["eri"]
    assert line(text, "Cycles by stage", "eri ").split()[1:3] == [
        f"{eri.low:,.0f}",
        f"{eri.high:,.0f}",
    ]
    rounds = line(text, "Cycles by vertex type", "jacobi_rows").split()
    assert rounds[3:] == [f"{20 * 8 * 23 * 1472:,}", "counted"]
    idle = line(text, "Execution", "Compute, tile average including idle").split()[-1]
    assert idle == f"{profile.tile_compute.mean():,.0f}"
    busy = line(text, "Execution", "Compute, tile average excluding idle").split()[-1]
    assert busy == f"{profile.tile_compute[profile.tile_compute > 0].mean():,.0f}"
    assert "100 µs to 900 µs, about 200 µs" in line(text, "Execution", "Host exchange")


def test_the_operations_of_all_turns_and_their_share_of_the_peak():
    half_of_peak = replace(compute("v", "xc", 1e6, 3e6), flops=0.5 * 32 * 1472 * 1e6)
    profile = scf_profile(program=(Repeat(4, (half_of_peak,)), compute("w", "", 4e6, 4e6)))
    text = profile.summary()
    assert "94.208 G, 25.0 % of the matrix units' peak" in line(text, "Execution", "Floating-point")
    assert line(text, "Rates, of low cycles", "xc").split()[1] == "94.208"
    assert "Floating-point" not in scf_profile().summary()


def test_a_complete_total_is_not_called_a_bound():
    text = scf_profile(unknown_ops={}, notes=(), energy_hartree=None).summary()
    assert "at least" not in text
    assert "Operations without" not in text
    assert "Notes" not in text.splitlines()
    assert "hartree" not in text


def test_overflowing_tile_is_named():
    text = scf_profile().summary()
    maximum = line(text, "Memory Usage", "Maximum")
    assert maximum.endswith(f"on tile {OVERFLOWING_TILE}")
    assert line(text, "Memory Usage", "Tiles out of memory").endswith(f"1  ({OVERFLOWING_TILE})")
    assert f"tile {OVERFLOWING_TILE}" in line(text, "Memory Usage", f"tile {OVERFLOWING_TILE}")
    assert line(text, "Memory Usage", "over 624.0 KiB").split()[3:] == ["1", "#"]


def test_histogram_counts_every_tile_once():
    text = scf_profile().summary()
    rows = section(text, "Memory Usage")
    start = rows.index("  Tile histogram") + 1
    cells = [row.split("KiB")[-1].split() for row in rows[start : start + 9]]
    counts = [int(cell[0].replace(",", "")) for cell in cells]
    assert sum(counts) == 1472
    assert counts[-1] == 1


def test_a_tile_filled_to_the_last_byte_is_not_out_of_memory():
    limit = scf_memory().limit_bytes
    full = np.array([limit, limit + 1, 0], dtype=np.int64)
    memory = Memory(limit, {"variables": full}, np.zeros_like(full), (), ())
    profile = scf_profile(memory=memory, n_tiles=3, tile_compute=np.ones(3))
    text = profile.summary()
    assert line(text, "Memory Usage", "over 624.0 KiB").split()[3] == "1"
    assert line(text, "Memory Usage", "546.0 KiB to 624.0 KiB").split()[5] == "1"
    assert line(text, "Memory Usage", "Tiles out of memory").endswith("1  (1)")


def test_an_empty_program_has_a_summary():
    text = scf_profile(program=(), tile_compute=np.zeros(1472)).summary()
    assert line(text, "Execution", "Total cycles").split()[-2:] == ["0", "0"]
    assert "Cycles by vertex type" not in text.splitlines()


def test_units():
    assert [data_size(x) for x in (0, 1023, 1024, 624 * 1024, 918 << 20)] == [
        "0 B", "1023 B", "1.0 KiB", "624.0 KiB", "918.0 MiB",
    ]  # fmt: skip
    assert [duration(x) for x in (0.0, 3.21e-7, 0.012, 0.9996, 2.5, 12_345.0)] == [
        "0.00 ns", "321 ns", "12.0 ms", "1,000 ms", "2.50 s", "12,345 s",
    ]  # fmt: skip
    assert (clip("abcdef", 4), clip("abc", 4)) == ("abc…", "abc")
    assert (bar(0.001, 10), bar(0.0, 10), bar(1.0, 4)) == ("#", "", "####")


def test_ragged_tables_are_refused():
    with pytest.raises(ValueError, match="a row of 1 cells in a table of 2 columns"):
        table([("a", "b"), ("c",)], "< <")
    assert table([("a", "1"), ("bb", "22")], "< >") == ["  a    1", "  bb  22"]
