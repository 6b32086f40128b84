"""What the rows of a finished run would have cost on an IPU, in the run's own records.

Every program's record in the manifest gets the predicted cycles of one conformer of its shape, and
so does a record of the whole run, which the dataset card shows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qm1b.folder import shards
from qm1b.folder.shard_folder import ShardFolder
from qm1b.report.costs.shape_price import ShapePrice, ShapeToPrice, price, priced, seconds_of
from qm1b.rows.batch import conformer_of
from qm1b.rows.schema import Json
from qm1b.settings import FINE, PADDINGS
from qm1b.storage.files import write_json

if TYPE_CHECKING:
    from pyscf_ipu.ipu import Target

PRICE = "ipu_price"
"""The part of a manifest, of a run's record and of a program's record that holds it."""


def price_run(folder: Path, target: Target, tell: Callable[[str], None] = print) -> Json:
    """Price the shapes of a run's rows on one IPU, and write that into its manifest.

    Args:
        folder: of a run.
        target: the chip, or a system, of which one IPU counts.
        tell: what is being priced.

    Returns:
        The record of the whole run.

    Raises:
        UserError: there is no run, or a shard is damaged.
    """
    from pyscf_ipu.molecule.molecule import Molecule
    from pyscf_ipu.solver.solver import Solver

    source = ShardFolder(folder)
    manifest = source.manifest
    coarse = PADDINGS.index(manifest.settings.get("padding", FINE))
    solver = Solver(manifest.level)
    rows, samples = Counter[Any](), dict[Any, tuple[str, Molecule]]()
    known = dict[tuple[bytes, int], Any]()
    for path in source.shards:
        batch = shards.read_shard(path)
        for i in range(len(batch)):
            conformer = conformer_of(batch.row(i))
            atoms = conformer.numbers.tobytes(), conformer.charge
            if atoms not in known:
                molecule = Molecule(conformer.numbers, conformer.positions, charge=conformer.charge)
                known[atoms] = solver.shape(molecule, coarse)
                samples.setdefault(known[atoms], (conformer.smiles or conformer.id, molecule))
            rows[known[atoms]] += 1
    wanted = [
        ShapeToPrice(shape.label, n, partial(samples.__getitem__, shape))
        for shape, n in rows.most_common()
    ]
    how = partial(price, level=manifest.level, target=target, replicas=1, coarse=coarse)
    prices = priced(wanted, how, lambda shape: tell(shape.begun("row")))
    total = record(target.name, prices)
    path = folder / shards.MANIFEST
    values = json.loads(path.read_text(encoding="utf-8"))
    by_label = {p.label: p for p in prices}
    for run in values["runs"]:
        for program in run.get("programs", ()):
            if program["shape"] in by_label:
                program[PRICE] = of_shape(target.name, by_label[program["shape"]])
    if values["runs"]:
        values["runs"][-1][PRICE] = total
    write_json(path, values)
    return total


def record(target: str, prices: Sequence[ShapePrice]) -> Json:
    """The record of all rows together."""
    return {
        "target": target,
        "rows": sum(p.molecules for p in prices),
        "ipu_seconds": seconds_of(prices).to_dict(),
        "shapes": [{"shape": p.label} | of_shape(target, p) for p in prices],
    }


def of_shape(target: str, price: ShapePrice) -> Json:
    """The price of a conformer of a shape."""
    return {"target": target, "cycles": price.cycles.to_dict(), "sample": price.sample}
