"""What the scripts share: options, figures as JSON, missed bounds, and the clock."""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parent
T = TypeVar("T")
Part = Callable[[], tuple[Any, list[str]]]
"""Computes one part of a script: its figures, and the bounds that it missed."""


def parser(doc: str | None, file: str) -> argparse.ArgumentParser:
    """The options that every script has, from its `__doc__` and `__file__`."""
    script = Path(file)
    made = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{script.parent.name}.{script.stem}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = HERE / "results" / f"{script.stem}.json"
    made.add_argument("--out", type=Path, default=default, help="JSON with the figures")
    return made


def add_names(made: argparse.ArgumentParser, where: str, names: Iterable[str]) -> None:
    """An argument that takes any of some names; none means all."""
    every = list(names)
    text = f"any of {', '.join(every)}; default: all"

    def known(name: str) -> str:
        if name not in every:
            raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(every)}")
        return name

    # Not by `choices`: Python 3.11 would compare the empty list with them.
    made.add_argument(where, nargs="*", metavar="NAME", type=known, help=text)


def earlier(out: Path) -> dict[str, Any]:
    """The figures of an earlier run, if there was one."""
    return json.loads(out.read_text()) if out.exists() else {}


def run_parts(parts: Mapping[str, Part], names: Sequence[str], out: Path) -> int:
    """Run parts of a script, and keep the figures of the others; returns the exit status."""
    figures, missed = earlier(out), []
    for name in names or parts:
        print(f"\n== {name}", flush=True)
        figures[name], wrong = parts[name]()
        missed += [f"{name}: {one}" for one in wrong]
        save(out, figures)
    return finish(out, figures, missed)


def finish(out: Path, figures: Any, missed: Sequence[str] = ()) -> int:
    """Save the figures and name the bounds that were missed; returns the exit status."""
    save(out, figures)
    print(f"figures: {out}")
    print("\n".join(f"MISSED: {one}" for one in missed) or "no bound missed")
    return 1 if missed else 0


def save(out: Path, figures: Any) -> None:
    """Write figures as JSON."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(figures, indent=1))


def table(rows: Iterable[Mapping[str, Any]], *columns: str) -> None:
    """Print some figures of each row, or all of them."""
    import pandas as pd  # not at the top: the memory of workers is measured

    frame = pd.DataFrame(list(rows), columns=columns or None)
    print(frame.to_string(index=False, float_format="{:.4g}".format), flush=True)


def evenly(items: list[T], limit: int | None) -> list[T]:
    """All items, or `limit` of them at equal distances."""
    if limit is None or limit >= len(items):
        return items
    return [items[int(i)] for i in np.linspace(0, len(items) - 1, limit)]


def grouped(items: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """Items by their key, in the order in which the keys turn up."""
    found: dict[Any, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def timed(function: Callable[..., T], *args: Any) -> tuple[float, T]:
    """The seconds that a call takes, and its result."""
    start = time.perf_counter()
    found = function(*args)
    return time.perf_counter() - start, found


def median_seconds(function: Callable[[], Any], rounds: int) -> float:
    """The median time of a call."""
    return statistics.median(timed(function)[0] for _ in range(rounds))


def processor_seconds(function: Callable[[], Any], rounds: int) -> float:
    """The median processor time of a call of one thread, which leaves out what others take."""

    def call() -> float:
        start = time.process_time()
        function()
        return time.process_time() - start

    return statistics.median(call() for _ in range(rounds))


def in_turn(sides: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Call each side once a round, so that a machine that gets slower does so for all of them.

    Every second round goes through the sides backwards.
    """
    found: dict[str, list[T]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            seconds, result = timed(sides[name])
            print(f"  round {number + 1}: {name:22} {seconds:8.2f} s", flush=True)
            found[name].append(result)
    return found
