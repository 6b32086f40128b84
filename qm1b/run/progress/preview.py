"""What a run will take and leave out, from a sample of its input, before it computes anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyscf_ipu.base.terminal import counted
from pyscf_ipu.shapes.shape import Shape
from qm1b.engine.padding import cheapest
from qm1b.engine.price import Prices
from qm1b.inputs import InputSummary
from qm1b.rows.schema import TOO_LARGE, Drop
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Screen
from qm1b.settings import FINE, PADDINGS, Padding, RunSettings


@dataclass(frozen=True)
class SampledLine:
    """A record of the sample."""

    seconds: float
    """Price of its rows; 0 if it is left out."""
    rows: int
    shape: Shape | None
    reason: str = ""
    """Why it is left out."""


@dataclass(frozen=True)
class Preview:
    """A run as its sample shows it: lines at equal distances stand for those between them."""

    n_lines: int
    """Of the input, up to the limit."""
    sample: Sequence[SampledLine]
    prices: Prices
    """Of rows of the run."""
    padding: Padding = FINE
    """The one given, or the cheapest."""

    @classmethod
    def of(
        cls, source: InputSummary, settings: RunSettings, limits: Limits, molecules: float = 0.0
    ) -> Preview:
        """Screen and price the sample of an input.

        Args:
            source: the whole input, also if the run computes a share of it: so all shares have the
                same padding, and can be merged.
            settings: of the run; without a padding the cheapest one is chosen.
            limits: of its molecules.
            molecules: lines of the run, if not those of the input.
        """
        screen = Screen(limits, settings.conformers)
        seen = [screen(record) for record in source.sample]
        atoms = [[] if isinstance(each, Drop) else each.numbers for each in seen]
        n_lines = min(source.n_lines, settings.limit or source.n_lines)
        each = settings.conformers * (molecules or n_lines) / len(seen)
        padding = settings.padding or cheapest(filter(None, atoms), each, settings)
        prices = Prices(
            settings.level, forces=settings.forces, coarse=PADDINGS.index(padding),
            is_simulated=settings.is_simulated,
        )  # fmt: skip
        lines = []
        for verdict, numbers in zip(seen, atoms, strict=True):
            if isinstance(verdict, Drop):
                lines.append(SampledLine(0.0, 0, None, reason=verdict.reason))
            else:
                rows = settings.conformers * len(verdict.multiplicities)
                seconds = rows * prices.seconds(numbers)
                lines.append(SampledLine(seconds, rows, prices.shape(numbers)))
        return cls(n_lines, lines, prices, padding=padding)

    @property
    def is_whole(self) -> bool:
        """Whether every line is in the sample."""
        return len(self.sample) == self.n_lines

    @property
    def line_seconds(self) -> list[float]:
        """Price of the rows of each line of the sample."""
        return [line.seconds for line in self.sample]

    def after(self, line: int) -> Sequence[SampledLine]:
        """The sample after a line of the input, or its last line."""
        first = min(-(-line * len(self.sample) // self.n_lines), len(self.sample) - 1)
        return self.sample[first:]

    def seconds_of(self, n_lines: int, after: int = 0) -> float:
        """Price of this many lines after a line of the input."""
        rest = self.after(after)
        return n_lines * sum(line.seconds for line in rest) / len(rest)

    @property
    def shapes(self) -> Counter[Shape]:
        """Rows of each shape in the sample."""
        shapes = Counter[Shape]()
        for line in self.sample:
            if line.shape is not None:
                shapes[line.shape] += line.rows
        return shapes


def too_large(preview: Preview, source: InputSummary, settings: RunSettings, limits: Limits) -> str:
    """How many lines are too large, and what would compute them; "" if none is."""
    looked_at = zip(preview.sample, source.sample, strict=True)
    large = [record for line, record in looked_at if line.reason == TOO_LARGE]
    if not large:
        return ""
    share = f"{len(large)} of {counted(preview.n_lines, 'line')}"
    if not preview.is_whole:
        share = f"about {100 * len(large) / len(preview.sample):.2g} % of the lines"
    text = f"{share} will be dropped as {TOO_LARGE}: more atomic orbitals than {settings.max_aos}"
    ways, left = [], len(large)
    for flag, limit in _larger_limits(settings):
        verdicts = map(Screen(replace(limits, max_aos=limit)), large)
        fit = sum(not (isinstance(v, Drop) and v.reason == TOO_LARGE) for v in verdicts)
        if left and fit > len(large) - left:
            left = len(large) - fit
            ways.append(f"{flag} computes {f'{fit} of them' if left else 'them all'}")
    text += f"; on this machine {' and '.join(ways)}" if ways else ""
    return f"{text}; {left} need a machine with more memory" if left else text


def _larger_limits(settings: RunSettings) -> list[tuple[str, int]]:
    """Flags that raise the limit, and the limits that this machine's memory allows then."""
    from pyscf_ipu.solver.platform import size_limit

    limits = []
    for form, flag in ((settings.level.jk, ""), ("ri", "--jk ri ")):
        limit = size_limit(settings.level.with_form(form))
        if limit > max([settings.max_aos, *(known for _, known in limits)]):
            limits.append((f"{flag}--max-aos {limit}", limit))
    return limits
