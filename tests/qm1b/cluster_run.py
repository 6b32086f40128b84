"""A run on a Ray cluster of three nodes of one core; one is killed after the first shard.

    python cluster_run.py INPUT OUT

A script of its own: Ray's processes, threads and warnings stay out of the tests.
"""

import os
import sys
import threading
import time
from pathlib import Path

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_DEDUP_LOGS"] = "0"  # read by the import of Ray
sys.path.insert(0, str(Path(__file__).parent))

from fake_runs import settings
from ray.cluster_utils import Cluster

from qm1b.folder import shards
from qm1b.process.display import Plain
from qm1b.run.generate import Run, generate

NODE = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
HEALTH = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
"""A dead node is noticed sooner than by default."""


def main() -> None:
    source, out = map(Path, sys.argv[1:])
    cluster = Cluster(initialize_head=True, head_node_args={"_system_config": HEALTH, **NODE})
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    cluster.wait_for_nodes()

    def kill() -> None:
        while not shards.shards(out):
            time.sleep(0.02)
        cluster.remove_node(nodes[0], allow_graceful=False)
        print("killed a node after", len(shards.shards(out)), "shards", flush=True)

    killer = threading.Thread(target=kill)
    killer.start()
    run = Run(
        source, out, settings(forces=True), factory="fake_engine:Slow", cluster=cluster.address
    )
    summary = generate(run, Plain(1.0))
    killer.join()
    print(f"{summary.tally.units} units, {len(cluster.list_all_nodes())} nodes left", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
