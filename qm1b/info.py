"""What a finished or interrupted run holds, as text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from pyscf_ipu.units import HARTREE_TO_EV

from . import store
from .batch import Batch
from .molecules import distinct
from .schema import CONVERGED, DROP_REASONS

MEV = 1e3 * HARTREE_TO_EV


def describe(folder: Path) -> str:
    """Settings, counts, reasons and ranges of a run, from its manifest and shards.

    Raises:
        UserError: the folder holds no run, or a shard is damaged.
    """
    manifest = store.read_manifest(folder)
    settings = manifest["settings"]
    status: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    gaps: list[np.ndarray] = []
    aos: list[np.ndarray] = []
    errors: list[np.ndarray] = []
    molecules = set[int]()
    for path in store.shards(folder):
        shard = store.read_shard(path)
        good = shard["status"] == CONVERGED
        status.update(s.split(":")[0] for s in shard["status"])
        reasons.update(drop.reason for drop in store.read_drops(path))
        gaps.append((shard["lumo"] - shard["homo"])[good] * HARTREE_TO_EV)
        aos.append(shard["n_ao"])
        error = (shard["energy"] - shard["reference_energy"])[good] * MEV
        errors.append(error[np.isfinite(error)])
        molecules |= distinct(Batch(shard))
    lines = [
        f"{folder}: {manifest['status']}, {len(store.shards(folder))} shards",
        f"  input        {manifest['input']['name']} ({manifest['input']['lines']} lines)",
        f"  level        {settings['xc']}/{settings['basis']}, grid level "
        f"{settings['grid_level']}, {settings['precision']}",
        f"  functional   {manifest['functional_definition']}",
        f"  conformers   {settings['conformers']} a molecule, seed {settings['seed']}",
        f"  fingerprint  {manifest['fingerprint']}",
        f"  molecules    {len(molecules)}",
        f"  rows         {status.total()}",
        *(f"    {name:<18} {count}" for name, count in status.most_common()),
        f"  dropped      {reasons.total()}",
        *(f"    {r:<18} {n:<8} {DROP_REASONS.get(r, '')}" for r, n in reasons.most_common()),
    ]
    gap = np.concatenate([*gaps, []])
    n_ao = np.concatenate([*aos, np.array([], dtype=int)])
    if gap.size:
        lines.append(f"  gap          {_gaps(gap)}")
        lines.append(f"  size         {n_ao.min()} to {n_ao.max()} AOs")
    error = np.abs(np.concatenate([*errors, []]))
    if error.size:
        lines.append(
            f"  audited      {error.size} rows, energy against PySCF: mean {error.mean():.3f} meV, "
            f"largest {error.max():.3f} meV"
        )
    return "\n".join(lines)


def _gaps(gap: np.ndarray) -> str:
    """The range of gaps in eV; helium in a minimal basis has no empty orbital, so no gap."""
    finite = gap[np.isfinite(gap)]
    if not finite.size:
        return "none: no converged row has one"
    without = f", {gap.size - finite.size} rows without" if finite.size < gap.size else ""
    median = np.median(finite)
    return f"{finite.min():.3f} to {finite.max():.3f} eV, median {median:.3f} eV{without}"
