"""Invariants of the columns that follow from others, or from the density: sums and symmetries."""

import numpy as np
from jaxtyping import Bool

from pyscf_ipu.molecule import balance
from qm1b.rows.batch import Batch
from qm1b.rows.schema import CONVERGED

CHARGE_TOLERANCE_E = 1e-3
BALANCE_TOLERANCE = 1e-9  # Hartree/Bohr and Hartree: of adding up in another order


def wrong_properties(batch: Batch) -> Bool[np.ndarray, " R"]:
    """Converged rows whose Löwdin charges do not add up to the charge, whose bond orders are not
    symmetric with zeros on the diagonal, or whose quadrupole is not symmetric; NaN is wrong."""
    bad = np.zeros(len(batch), bool)
    if "charges_lowdin" in batch:
        row = np.repeat(np.arange(len(batch)), np.diff(batch["atom_offset"]))
        sums = np.bincount(row, weights=batch["charges_lowdin"], minlength=len(batch))
        bad |= ~(np.abs(sums - batch["charge"]) <= CHARGE_TOLERANCE_E)
    if "quadrupole" in batch:
        moments = batch["quadrupole"]
        bad |= ~(moments == moments.swapaxes(1, 2)).all(axis=(1, 2))
    if "bond_orders" in batch:
        for i, row in enumerate(batch.only(["bond_orders"]).rows()):
            orders = row["bond_orders"]
            bad[i] |= not (np.array_equal(orders, orders.T) and not orders.diagonal().any())
    return (batch["status"] == CONVERGED) & bad


def wrong_balance(batch: Batch) -> Bool[np.ndarray, " R"]:
    """Rows whose net force or torque is not that of their forces."""
    bad = np.zeros(len(batch), bool)
    if "net_force" not in batch:
        return bad
    for i, row in enumerate(batch.only(["positions", "forces", "net_force", "torque"]).rows()):
        for stored, of_forces in (
            (row["net_force"], balance.net_force(row["forces"])),
            (row["torque"], balance.torque(row["positions"], row["forces"])),
        ):
            near = np.abs(stored - of_forces) <= BALANCE_TOLERANCE
            bad[i] |= not (near | (np.isnan(stored) & np.isnan(of_forces))).all()
    return bad
