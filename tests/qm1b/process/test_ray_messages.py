"""What Ray prints of itself becomes plain sentences; everything else passes."""

import io
import threading

from qm1b.process.ray_messages import RayMessages

LOST = (
    "\x1b[33m(raylet)\x1b[0m Task unit_of_task failed. There are 20 retries remaining, so the task "
    "will be retried. Error: Task failed because the node it was running on is dead or "
    "unavailable. Node IP: 192.0.2.7, node ID: 00fc8b9e\n"
)
DEAD = (
    "\x1b[33m(raylet)\x1b[0m The node with node id: 00fc8b9e and address: 192.0.2.7 and node name: "
    "192.0.2.7 has been marked dead because ...\n(2) raylet has lagging heartbeats\n"
)


def of_ray(stream, *texts):
    def write():
        for text in texts:
            stream.write(text)

    thread = threading.Thread(target=write, name="ray_listen_error_messages")
    thread.start()
    thread.join()


def test_lost_nodes_are_named_with_what_is_computed_again():
    plain = io.TextIOWrapper(io.BytesIO(), write_through=True)
    stream = RayMessages(plain)
    of_ray(stream, LOST, LOST, DEAD, "\n", "(raylet) Raylet is terminated.\n[state-dump]\n")
    stream.write("ours\n")
    assert plain.buffer.getvalue() == b"ours\n"
    assert stream.take() == [
        "node 192.0.2.7 was lost with 2 work units in progress, which Ray computes again elsewhere",
        "node 192.0.2.7 is dead; Ray computes its units elsewhere",
    ]
    assert stream.take() == []


def test_what_else_ray_says_is_one_line():
    stream = RayMessages(io.TextIOWrapper(io.BytesIO()))
    of_ray(stream, "\x1b[31m(raylet)\x1b[0m A worker was killed: no memory\nmore\n" + "x" * 999)
    assert stream.take() == ["Ray: A worker was killed: no memory"]
