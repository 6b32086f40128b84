"""A Profile in types that JSON has."""

from dataclasses import asdict, astuple

import numpy as np

from pyscf_ipu.ipu.findings.pipelines import pipeline
from pyscf_ipu.ipu.findings.rates import rates
from pyscf_ipu.ipu.findings.words import findings
from pyscf_ipu.ipu.profile.data import ProfileData, Repeat, Step


def to_dict(profile: ProfileData) -> dict[str, object]:
    """Everything, in types that JSON has."""
    return figures(profile) | {"program": [_node(x) for x in profile.program]}


def figures(profile: ProfileData) -> dict[str, object]:
    """Everything but the program, in types that JSON has."""
    memory, cycles, staged = profile.memory, profile.cycles, pipeline(profile)
    return {
        "target": profile.target,
        "num_ipus": profile.num_ipus,
        "tiles": profile.n_tiles,
        "clock_hz": profile.clock_hz,
        "energy_hartree": profile.energy_hartree,
        "cycles": {
            "total": cycles.low,
            "high": cycles.high,
            "is_lower_bound": bool(profile.unknown_ops),
            "by_stage": _plain_totals(profile, "stage"),
            "by_kind": _plain_totals(profile, "kind"),
            "by_vertex": _plain_totals(profile, "name"),
        },
        "seconds": asdict(profile.seconds),
        "host_seconds": dict(zip(("low", "mid", "high"), profile.host_seconds, strict=True)),
        "memory": {
            "limit_bytes": memory.limit_bytes,
            "max_tile_bytes": memory.max_tile_bytes,
            "overflowing_tiles": memory.overflowing.tolist(),
            "max_code_bytes": int(memory.code.max(initial=0)),
            "executable_bytes": memory.executable_bytes,
            "code_overflowing_tiles": memory.code_overflowing.tolist(),
            "interleaved_bytes": int(memory.only_interleaved.max(initial=0)),
            "interleaved_overflowing_tiles": memory.interleaved_overflowing.tolist(),
            "by_region": _most_and_all(memory.regions),
            "streaming_bytes": memory.streaming_bytes,
            "streaming_limit_bytes": memory.streaming_limit_bytes,
            "by_category": _most_and_all(memory.by_category),
            "per_tile_bytes": memory.per_tile.tolist(),
            "always_live_bytes": memory.always_live.tolist(),
            "timeline": [list(x) for x in memory.timeline],
            "largest": [asdict(b) for b in memory.largest],
            "lifetimes": [list(astuple(x)) for x in memory.lifetimes],
        },
        "tile_balance": {"all": profile.balance(), **profile.balance_by_stage()},
        "tile_compute_cycles": profile.tile_compute.tolist(),
        "unknown_ops": profile.unknown_ops,
        "replicas": profile.replicas,
        "wall_seconds": asdict(profile.wall_seconds),
        "ipus": [asdict(row) for row in profile.ipus(staged.cycles.low if staged else 0.0)],
        "pipeline": staged.to_dict() if staged is not None else None,
        "findings": list(findings(profile)),
        "rates": {name: asdict(rate) for name, rate in rates(profile).items()},
        "provenance": _plain_totals(profile, "how"),
        "notes": list(profile.notes),
        "subject": profile.subject,
    }


def _most_and_all(parts: dict[str, np.ndarray]) -> dict[str, dict[str, int]]:
    return {k: {"max_bytes": int(v.max()), "total_bytes": int(v.sum())} for k, v in parts.items()}


def _plain_totals(profile: ProfileData, attribute: str) -> dict[str, dict[str, float]]:
    return {name: asdict(cycles) for name, cycles in profile.total_by(attribute).items()}


def _node(x: Step | Repeat) -> dict[str, object]:
    if isinstance(x, Repeat):
        return {"repeat": x.count, "name": x.name, "body": [_node(y) for y in x.body]}
    return asdict(x)
