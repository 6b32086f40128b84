"""Sums and symmetries of properties, net force and torque: what breaks them is seen."""

from dataclasses import replace

import numpy as np
import pytest
from fake_runs import conformer, row

from pyscf_ipu.molecule import balance
from qm1b.audit.properties import wrong_balance, wrong_properties
from qm1b.rows.batch import batch_of_rows
from qm1b.rows.schema import PROPERTIES, fields_of

FIELDS = fields_of({"properties": " ".join(PROPERTIES), "forces": True})
WATER = conformer(1, [8, 1, 1], np.arange(9.0).reshape(3, 3) ** 2, charge=1)
FORCES = ((0.0, 0.1, 0.2), (-0.1, -0.1, 0.0), (0.1, 0.0, -0.1))
ORDERS = ((0.0, 0.9, 0.8), (0.9, 0.0, 0.1), (0.8, 0.1, 0.0))
MOMENTS = ((1.0, 0.5, 0.2), (0.5, 2.0, 0.3), (0.2, 0.3, 3.0))
SOUND = row(
    WATER, charges_lowdin=(0.5, 0.2, 0.3), bond_orders=ORDERS, quadrupole=MOMENTS, forces=FORCES,
    net_force=tuple(balance.net_force(np.array(FORCES)).tolist()),
    torque=tuple(balance.torque(WATER.positions, np.array(FORCES)).tolist()),
)  # fmt: skip
LOST = row(replace(WATER, line=2), status="error: lost")


def judged(changed):
    """Whether properties and balance of a row are wrong, between two that are right."""
    batch = batch_of_rows([SOUND, changed, LOST], FIELDS)
    properties, balances = wrong_properties(batch).tolist(), wrong_balance(batch).tolist()
    assert (properties[0], properties[2], balances[0], balances[2]) == (False,) * 4
    return properties[1], balances[1]


def test_sound_rows_and_rows_that_failed_pass():
    assert judged(SOUND) == (False, False)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"charges_lowdin": (0.5, 0.2, 0.4)}, (True, False)),
        ({"charges_lowdin": (0.5, float("nan"), 0.3)}, (True, False)),
        ({"bond_orders": (*ORDERS[:2], (0.8, 0.2, 0.0))}, (True, False)),
        ({"bond_orders": ((0.1, *ORDERS[0][1:]), *ORDERS[1:])}, (True, False)),
        ({"bond_orders": ()}, (True, False)),
        ({"quadrupole": (MOMENTS[0], MOMENTS[0], MOMENTS[2])}, (True, False)),
        ({"net_force": (0.0, 0.0, 0.0)}, (False, True)),
        ({"torque": (0.0, float("nan"), 0.0)}, (False, True)),
        ({"status": "not_converged", "charges_lowdin": (0.5, 0.2, 0.4)}, (False, False)),
    ],
)
def test_a_broken_row_is_seen(changes, verdict):
    assert judged(replace(SOUND, **changes)) == verdict


def test_rows_without_the_columns_pass():
    batch = batch_of_rows([SOUND], fields_of({}))
    assert not wrong_properties(batch).any()
    assert not wrong_balance(batch).any()
