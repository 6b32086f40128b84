"""Aligned columns and units, for reports in a terminal."""

from collections.abc import Iterable, Sequence

from pyscf_ipu.base.terminal import text_table

WIDTH = 100
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def whole(value: float | int) -> str:
    """A count or a number of cycles, with separators of thousands."""
    return f"{value:,.0f}"


def percent(fraction: float | int) -> str:
    return f"{100 * fraction:.1f} %"


def data_size(size: float | int) -> str:
    """Bytes in the binary unit that leaves at most four digits before the point."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"


def duration(seconds: float | int) -> str:
    """Seconds to three digits, in the largest unit that leaves a digit before the point."""
    scale, unit = next(((s, u) for s, u in _SECONDS if seconds >= s), _SECONDS[-1])
    value = seconds / scale
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{decimals}f} {unit}"


def clip(text: str, width: int) -> str:
    """`text`, or as much of it as fits with an ellipsis at the end."""
    return text if len(text) <= width else text[: width - 1] + "…"


def bar(fraction: float, width: int) -> str:
    """A bar of at most `width` characters; at least one for whatever is not zero."""
    return "#" * max(round(fraction * width), int(fraction > 0))


def table(rows: Iterable[Sequence[str]], columns: str) -> list[str]:
    """The lines of an indented table; see `text_table` for the columns."""
    return text_table(rows, columns, gap="  ", indent="  ")
