"""Time of data on the move: between tiles, between IPUs, and to the host.

On one IPU the exchange is scheduled at compile time, without headers or collisions, so that it
takes as long as its busiest end: the tile that receives most, or the bus that sends most.  That is
the model of PopLibs (popops/ExchangeEstimator.cpp) and of ipu-stack (cost.rs).
"""

import math

import numpy as np

from pyscf_ipu.ipu.chip.quantity import Quantity
from pyscf_ipu.ipu.chip.target import Target


def sync_cost(target: Target, num_ipus: int = 1) -> Quantity:
    """Cycles of the sync before an exchange: among the tiles of one IPU, or among all IPUs."""
    return target.max_ipu_sync_delay if num_ipus == 1 else target.global_sync_cycles


def exchange_cycles(target: Target, bytes_in: np.ndarray, bytes_out: np.ndarray) -> float:
    """Cycles of one exchange among the tiles of each IPU, without its sync.

    Every tile receives `bytes_in` [n_tiles] and puts `bytes_out` [n_tiles] on the bus, where bytes
    for many tiles count once.

    Raises:
        ValueError: The two arrays are not of one shape [n_tiles].
    """
    if bytes_in.ndim != 1 or bytes_in.shape != bytes_out.shape:
        raise ValueError(
            f"bytes_in has shape {bytes_in.shape} and bytes_out {bytes_out.shape}: both need one "
            "entry per tile"
        )
    shared = int(target.tiles_per_shared_exchange_bus)
    buses = np.pad(bytes_out, (0, -len(bytes_out) % shared)).reshape(-1, shared).sum(axis=1)
    busiest = max(float(bytes_in.max(initial=0)), float(buses.max(initial=0)))
    return float(math.ceil(busiest / float(target.exchange_bytes_per_cycle)))


def link_cycles(target: Target, traffic: np.ndarray) -> float:
    """Cycles of the tile clock for data between IPUs: a floor, because no latency is known.

    The busiest IPU, machine or pod sets the time, in the direction that has more to carry.

    Args:
        target: The chip; IPUs are numbered machine by machine.
        traffic: [num_ipus, num_ipus] bytes from IPU i to IPU j; the diagonal does not count.

    Raises:
        ValueError: `traffic` is not square.
    """
    if traffic.ndim != 2 or traffic.shape[0] != traffic.shape[1] or not traffic.size:
        raise ValueError(
            f"traffic has shape {traffic.shape}: it needs one row per sending IPU and one column "
            "per receiving IPU"
        )
    if not np.any(traffic[~np.eye(len(traffic), dtype=bool)]):
        return 0.0
    machine, whole = int(target.ipus_per_machine), int(target.ipus_per_pod)
    gateways = whole // machine * float(target.gateway_link_bytes_per_second)
    seconds = max(
        _leaving(traffic, 1) / float(target.ipu_link_bytes_per_second),
        _leaving(traffic, machine) / float(target.machine_link_bytes_per_second),
        _leaving(traffic, whole) / gateways,
    )
    latency = target.ipu_link_latency
    seconds += float(latency) if latency.known else 0.0
    return float(math.ceil(seconds * float(target.tile_clock_frequency)))


def host_seconds(
    target: Target, nbytes: int | float, replicas: int = 1, num_ipus: int = 1
) -> tuple[float, float, float]:
    """Seconds for bytes to or from the host, without latency: (low, mid, high).

    A range, because programs were seen to reach rates that differ by a factor of four.  The bytes
    are those of one replica, of `num_ipus` IPUs; replicas of a machine share its link to the host.
    """
    rates = (target.host_bandwidth_high, target.host_bandwidth_mid, target.host_bandwidth_low)
    link = target.host_link_bytes_per_second
    most = float(link) if link.known else math.inf
    sharing = min(replicas, max(1, int(target.ipus_per_machine) // num_ipus)) if link.known else 1
    low, mid, high = (sharing * nbytes / min(float(rate), most) for rate in rates)
    return low, mid, high


def _leaving(traffic: np.ndarray, group: int) -> float:
    """Most bytes that cross the border of a group of IPUs with successive numbers, one way."""
    of = np.arange(len(traffic)) // group
    crossing = np.where(of[:, None] != of[None, :], traffic, 0.0)
    sent = np.bincount(of, weights=crossing.sum(axis=1))
    received = np.bincount(of, weights=crossing.sum(axis=0))
    return float(max(sent.max(), received.max()))
