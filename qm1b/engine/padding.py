"""Fine or coarse padding: which of the two takes a run less time, decided when it begins.

Coarse padding saves programs and makes rows dearer, so it pays as long as

    rows * seconds of a row * DEARER * MARGIN  <  programs saved * PROGRAM_SECONDS

in seconds of one core; further cores shorten both sides alike.

* Programs saved: molecules of 5 to 9 heavy atoms have 15 shapes with fine limits for the hydrogens,
  and 8 with coarse ones. Of n shapes that are equally frequent, m molecules meet on average
  n (1 - (1 - 1/n)^m). So one molecule saves no program, ten save 1.6, and hundreds save 7.
* A program takes 5 s for STO-3G, and up to three times as long for larger sets. They are taken to
  be alike here: it is rows that differ by far more.
* A row of C7H12O2 takes 95 ms at QM1B's level (docs/lab-notes.md). At other levels it takes that
  times N^2 G, because the matrix products on the grid take most of the time.
* Rows are a fifth dearer: that is how much N^2 G grows on average over the bundled molecules,
  without the fifth of the time that integrals take, to which padding adds nothing.
* The margin is 2: the figures are rough, and programs with fine limits stay on disk for later and
  longer runs.

At QM1B's level this gives 7 * 5 / (0.095 * 0.2 * 2) = 920 rows, and 135 with 6-31G*; with
finer grids beside that, none. Forces, stability and more precision are left out, as they make rows
and programs dearer alike, and so are programs that are on disk: the same command must give the same
rows on every machine.
"""

from pyscf_ipu.base.errors import InvalidMolecule
from pyscf_ipu.settings import Settings
from pyscf_ipu.shapes.shape import hydrogen_limits, shape_of
from qm1b.engine.programs import PROGRAM_SECONDS
from qm1b.settings import COARSE, FINE, Padding

TYPICAL = (6,) * 7 + (8,) * 2 + (1,) * 12
"""The atomic numbers of the molecule that was measured, which has 59 AOs and 18,454 grid points at
QM1B's level."""
ROW_SECONDS = 0.095 / (59**2 * 18454)
"""Time of one core, by N^2 G."""
DEARER = 0.2
"""Share of its time that coarse padding adds to a row."""
MARGIN = 2.0
"""How many times the lost time coarse padding must save."""
HEAVY = range(5, 10)
"""Heavy atoms of the molecules that a run is taken to have."""


def cheaper(level: Settings, molecules: int, conformers: int) -> Padding:
    """The padding with which a run takes less time, where no program is on disk.

    Args:
        level: the level of theory.
        molecules: lines of the input; those that will be dropped count too.
        conformers: of each.
    """
    lost = molecules * conformers * _row_seconds(level) * DEARER
    return COARSE if MARGIN * lost < programs_saved(molecules) * PROGRAM_SECONDS else FINE


def programs_saved(molecules: int) -> float:
    """How many programs fewer this many molecules need with coarse padding, on average."""
    fine, coarse = (sum(len(hydrogen_limits(n, c)) for n in HEAVY) for c in (False, True))
    return _met(fine, molecules) - _met(coarse, molecules)


def _met(shapes: int, molecules: int) -> float:
    """The average number of these shapes that molecules have at least once."""
    return shapes * (1.0 - (1.0 - 1.0 / shapes) ** molecules)


def _row_seconds(level: Settings) -> float:
    """Seconds of one core for a molecule like TYPICAL; infinite if the basis lacks its elements."""
    try:
        shape = shape_of(TYPICAL, level.basis, level.cart, grid=level.grid)
    except InvalidMolecule:
        return float("inf")
    return ROW_SECONDS * shape.n_ao**2 * shape.n_grid
