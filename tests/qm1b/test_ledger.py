"""The ledger: units close when all their lines are finished, and only then."""

import numpy as np
from test_buckets import conformer

from qm1b.ledger import Ledger
from qm1b.schema import Drop, Result, Row

RESULT = Result("converged", 1)


def test_a_unit_closes_with_its_last_line():
    ledger = Ledger(unit_lines=2)
    ledger.opened(1, "C")
    ledger.dropped(Drop(2, "x", "unparsable"))
    ledger.opened(3, "CC")
    assert list(ledger.closed(at_end=False)) == []
    ledger.embedded(1, 1, Drop(1, "C", "fewer_conformers"))
    ledger.computed(Row(conformer(1), RESULT))
    (unit,) = ledger.closed(at_end=False)
    assert (unit.index, len(unit.rows), [d.line for d in unit.drops]) == (0, 1, [1, 2])
    ledger.embedded(3, 0, Drop(3, "CC", "embed_failed"))
    assert list(ledger.closed(at_end=False)) == []
    (unit,) = ledger.closed(at_end=True)
    assert (unit.index, len(unit.rows), unit.complete) == (1, 0, True)
    assert ledger.unfinished == 0


def test_an_interrupted_unit_says_what_is_missing():
    ledger = Ledger(unit_lines=10)
    ledger.opened(1, "C")
    ledger.embedded(1, 2, None)
    ledger.opened(2, "CC")
    ledger.computed(Row(conformer(1), RESULT))
    (unit,) = ledger.interrupted()
    assert not unit.complete
    assert len(unit.rows) == 1
    assert [(d.line, d.smiles, d.reason) for d in unit.drops] == [
        (1, "C", "interrupted"),
        (2, "CC", "interrupted"),
    ]
    assert np.isnan(RESULT.energy)
