"""Sums and symmetries of properties: what breaks them is seen."""

from dataclasses import replace

import numpy as np
import pytest
from fake_runs import conformer, row

from qm1b.audit.properties import wrong_properties
from qm1b.rows.batch import batch_of_rows
from qm1b.rows.schema import PROPERTIES, fields_of

FIELDS = fields_of({"properties": " ".join(PROPERTIES)})
WATER = conformer(1, [8, 1, 1], np.arange(9.0).reshape(3, 3) ** 2, charge=1)
ORDERS = ((0.0, 0.9, 0.8), (0.9, 0.0, 0.1), (0.8, 0.1, 0.0))
MOMENTS = ((1.0, 0.5, 0.2), (0.5, 2.0, 0.3), (0.2, 0.3, 3.0))
SOUND = row(WATER, charges_lowdin=(0.5, 0.2, 0.3), bond_orders=ORDERS, quadrupole=MOMENTS)
LOST = row(replace(WATER, line=2), status="error: lost")


def judged(changed):
    """Whether a row is wrong, between two that are right."""
    first, verdict, last = wrong_properties(batch_of_rows([SOUND, changed, LOST], FIELDS)).tolist()
    assert not first
    assert not last
    return verdict


def test_sound_rows_and_rows_that_failed_pass():
    assert not judged(SOUND)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"charges_lowdin": (0.5, 0.2, 0.4)}, True),
        ({"charges_lowdin": (0.5, float("nan"), 0.3)}, True),
        ({"bond_orders": (*ORDERS[:2], (0.8, 0.2, 0.0))}, True),
        ({"bond_orders": ((0.1, *ORDERS[0][1:]), *ORDERS[1:])}, True),
        ({"bond_orders": ()}, True),
        ({"quadrupole": (MOMENTS[0], MOMENTS[0], MOMENTS[2])}, True),
        ({"status": "not_converged", "charges_lowdin": (0.5, 0.2, 0.4)}, False),
    ],
)
def test_a_broken_row_is_seen(changes, verdict):
    assert judged(replace(SOUND, **changes)) == verdict


def test_rows_without_the_columns_pass():
    batch = batch_of_rows([SOUND], fields_of({}))
    assert not wrong_properties(batch).any()
