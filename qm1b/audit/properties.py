"""Invariants of the columns that follow from the density: sums and symmetries."""

import numpy as np
from jaxtyping import Bool

from qm1b.rows.batch import Batch
from qm1b.rows.schema import CONVERGED

CHARGE_TOLERANCE_E = 1e-3


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
