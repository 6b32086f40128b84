"""What a dataset costs on a Pod: one conformer of every shape on the simulated IPU, times how many.

Every IPU runs the program of one shape at a time on a conformer of its own, as QM1B was made.  A
shape's price is that of one of its molecules, with the SCF cycles that this one really takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyscf_ipu.ipu.profile.data import Cycles
from pyscf_ipu.settings import Settings
from qm1b import inputs
from qm1b.engine import factory
from qm1b.engine.price import EMBED_SECONDS
from qm1b.errors import UserError
from qm1b.report.costs.shape_price import (
    ShapePrice,
    ShapeToPrice,
    check_priced,
    price,
    priced,
    seconds_of,
)
from qm1b.rows.schema import Drop, Json
from qm1b.screening.limits import Limits
from qm1b.screening.screen import Candidate, Screen
from qm1b.settings import RunSettings

if TYPE_CHECKING:
    from pyscf_ipu.ipu import Target
    from pyscf_ipu.molecule.molecule import Molecule

HOUR, DAY = 3600.0, 86400.0


@dataclass(frozen=True)
class PodPlan:
    """The price of a dataset on a system."""

    target: str
    replicas: int
    rows: float
    shapes: tuple[ShapePrice, ...]
    host_per_second: float
    """Conformers that the host servers can make; infinite for a chip by itself, and where the
    geometries are given."""

    @property
    def device_per_second(self) -> Cycles:
        """Conformers that the IPUs compute, if they never wait."""
        seconds = seconds_of(self.shapes) * (1 / sum(s.molecules for s in self.shapes))
        return Cycles(self.replicas / seconds.high, self.replicas / seconds.low)

    @property
    def per_second(self) -> Cycles:
        """The smaller of both."""
        rate = self.device_per_second
        return Cycles(min(rate.low, self.host_per_second), min(rate.high, self.host_per_second))

    @property
    def host_bound(self) -> bool:
        """Whether IPUs with ideal code wait for the host."""
        return self.host_per_second < self.device_per_second.high

    @property
    def days(self) -> Cycles:
        rate = self.per_second
        return Cycles(self.rows / rate.high / DAY, self.rows / rate.low / DAY)

    @property
    def ipu_hours(self) -> Cycles:
        hours = DAY / HOUR * self.replicas
        return Cycles(self.days.low * hours, self.days.high * hours)

    def to_dict(self) -> Json:
        """The figures, in types that JSON has."""
        total = sum(s.molecules for s in self.shapes)
        return {
            "target": self.target,
            "replicas": self.replicas,
            "rows": self.rows,
            "conformers_per_second": self.per_second.to_dict(),
            "ipu_hours": self.ipu_hours.to_dict(),
            "days": self.days.to_dict(),
            "shapes": [s.to_dict(s.molecules / total) for s in self.shapes],
            "host_bound": self.host_bound,
        }


def accepted(path: Path, settings: RunSettings) -> list[Candidate]:
    """The molecules of a file that a run would compute; raises UserError if there is none."""
    engine = factory.build(factory.DEFAULT, settings)
    screen = Screen(Limits.of(settings, factory.ao_counter(engine)))
    screened = [screen(record) for record in inputs.read(path, settings, settings.limit)]
    candidates = [x for x in screened if not isinstance(x, Drop)]
    if not candidates:
        raise UserError(f"no molecule of {path} can be computed: qm1b generate says why")
    return candidates


def pod_plan(
    candidates: Iterable[Candidate],
    level: Settings,
    target: Target,
    rows: float,
    coarse: int = 0,
    tell: Callable[[str], None] = print,
) -> PodPlan:
    """The price of a dataset of molecules like these.

    Args:
        candidates: molecules of the input, whose shapes are counted.
        level: the level of theory.
        target: the system; one IPU if it is a chip by itself.
        rows: of the dataset.
        coarse: how coarsely numbers of atoms are rounded up, 0 to 2.
        tell: what is being priced.

    Raises:
        UserError: a level of theory without a price, or no geometry for a shape.
    """
    from pyscf_ipu.solver.solver import Solver

    check_priced(level)
    solver = Solver(level)
    counts, samples = Counter[Any](), dict[Any, list[Candidate]]()
    for candidate in candidates:
        shape = solver.shape(_placeholder(candidate), coarse)
        counts[shape] += 1
        samples.setdefault(shape, []).append(candidate)
    if any(level.form(shape.n_ao) == "ri" for shape in counts):
        raise UserError(
            f"with jk={level.jk!r} the host makes a fit for every conformer, and how many it makes "
            "per second is not known here, so the dataset has no price: choose --jk exact, or let "
            "qm1b generate --price say what the IPUs alone take"
        )
    replicas = target.most_replicas
    wanted = [
        ShapeToPrice(shape.label, n, partial(_embedded, samples[shape]))
        for shape, n in counts.most_common()
    ]
    how = partial(price, level=level, target=target, replicas=replicas, coarse=coarse)
    prices = priced(wanted, how, lambda shape: tell(shape.begun("molecule")))
    cores = target.host_cores
    embeds = any(each.geometry is None for group in samples.values() for each in group)
    host = float(cores) / EMBED_SECONDS if embeds and cores.known else float("inf")
    return PodPlan(target.name, replicas, rows, shapes=prices, host_per_second=host)


def _placeholder(candidate: Candidate) -> Molecule:
    """The atoms of a candidate, anywhere: a shape does not depend on their places."""
    from pyscf_ipu.molecule.molecule import Molecule

    numbers = np.array(candidate.numbers)
    line = 3.0 * np.arange(len(numbers))[:, None] * np.array([1.0, 0.0, 0.0])
    return Molecule(numbers, line, charge=candidate.charge)


def _embedded(candidates: list[Candidate]) -> tuple[str, Molecule]:
    """The first of these molecules for which there is a geometry."""
    from pyscf_ipu.base.errors import InvalidMolecule
    from pyscf_ipu.molecule.molecule import Molecule

    for candidate in candidates[:20]:
        geometry = candidate.geometry
        if geometry is not None:
            mol = Molecule(geometry.numbers, geometry.positions, charge=candidate.charge)
            return candidate.identity, mol
        try:
            return candidate.smiles, Molecule.from_smiles(candidate.smiles, seed=0)
        except InvalidMolecule:
            continue
    raise UserError(
        f"RDKit finds no geometry for {candidates[0].smiles} and others of its size: leave them out"
    )
