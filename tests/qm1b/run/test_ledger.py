"""The ledger: units close when all their lines are finished, and only then."""

from fake_runs import conformer, row

from qm1b.folder.manifest.work_units import WorkPlan
from qm1b.rows.schema import Drop
from qm1b.run.ledger import Ledger


def test_a_unit_closes_with_its_last_line():
    ledger = Ledger(WorkPlan(99, 2))
    ledger.opened(1)
    ledger.dropped(Drop(2, "x", "unparsable"))
    ledger.opened(3)
    assert list(ledger.closed(at_end=False)) == []
    ledger.embedded(1, 1, Drop(1, "C", "fewer_conformers"))
    ledger.computed(row(conformer(1)))
    (unit,) = ledger.closed(at_end=False)
    assert (unit.index, len(unit.rows), [d.line for d in unit.drops]) == (0, 1, [1, 2])
    ledger.embedded(3, 0, Drop(3, "CC", "embed_failed"))
    assert list(ledger.closed(at_end=False)) == []
    (unit,) = ledger.closed(at_end=True)
    assert (unit.index, unit.rows, len(unit.drops)) == (1, [], 1)
    assert ledger.unfinished == 0


def test_how_many_units_were_begun_since():
    ledger = Ledger(WorkPlan(99, 2))
    for line in (1, 7, 5, 9):  # units 0, 3, 2, 4: other runs may have those between
        ledger.opened(line)
    assert [ledger.begun_since(line) for line in (1, 7, 5, 9)] == [3, 2, 1, 0]
    ledger.embedded(7, 0, Drop(7, "C", "embed_failed"))
    assert [unit.index for unit in ledger.closed(at_end=False)] == [3]
    assert ledger.begun_since(1) == 3
