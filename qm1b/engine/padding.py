"""How far atoms are rounded up: what takes a run less time, decided when it begins.

Coarse padding saves programs and makes rows dearer.  Of the paddings the run takes the one with the
least

    seconds of the programs + MARGIN * seconds of the rows

of one core, by the table of prices and for the molecules of the input's sample; further cores
shorten both alike.  The margin is there because the prices are rough, and because programs with
fine limits stay on disk for later and longer runs.  Programs that are on disk do not count: the
same command must give the same rows on every machine.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from qm1b.engine.price import Prices
from qm1b.settings import PADDINGS, Padding, RunSettings

MARGIN = 2.0
"""How many times the lost time coarse padding must save."""


def cheapest(molecules: Iterable[Sequence[int]], rows: float, settings: RunSettings) -> Padding:
    """The padding with which a run takes least time, where no program is on disk.

    The coarsest one is for molecules that remain within the run's limits with it, and on the
    machine itself: on a simulated IPU every row would be priced with the padding.

    Args:
        molecules: atomic numbers of molecules of the input.
        rows: of the run, for each of them.
        settings: of the run.
    """
    atoms = Counter(tuple(sorted(map(int, numbers))) for numbers in molecules)
    paddings = PADDINGS[:2] if settings.is_simulated else PADDINGS
    return min(paddings, key=lambda padding: _seconds(atoms, rows, settings, padding=padding))


def _seconds(
    atoms: Counter[tuple[int, ...]], rows: float, settings: RunSettings, *, padding: Padding
) -> float:
    """What is to be least; infinite where the coarsest padding would change more than the time."""
    level, coarse = settings.level, PADDINGS.index(padding)
    fine, prices = (Prices(level, settings.forces, coarse=c) for c in (0, coarse))
    shapes = {shape for numbers in atoms if (shape := prices.shape(numbers))}
    seconds = sum(map(prices.program_seconds, shapes), 0.0)
    for numbers, count in atoms.items():
        shape, own = prices.shape(numbers), fine.shape(numbers)
        if shape is None or own is None:
            continue
        is_other = level.form(shape.n_ao) != level.form(own.n_ao)
        if coarse > 1 and (is_other or shape.n_ao > settings.max_aos):
            return float("inf")
        seconds += MARGIN * count * rows * prices.seconds(numbers)
    return seconds
