"""RDKit workers with traps; imported by worker processes."""

import os
import signal
import sys
import time
from pathlib import Path

from qm1b.conformers.embed import embed
from qm1b.conformers.embed_pool import PROBE
from qm1b.process.jobs import Done
from qm1b.process.worker import Ready


def serve(conn, recipe):
    """Sleeps on "N", works for ever on "F", dies on "O"."""
    embed(PROBE, recipe)
    conn.send(Ready())
    while True:
        (candidate,) = conn.recv().items
        if candidate.smiles == "N":
            time.sleep(1000)
        while candidate.smiles == "F":
            pass
        if candidate.smiles == "O":
            os._exit(9)
        conn.send(Done(embed(candidate, recipe)))


def killed_once(conn, recipe):
    """Somebody kills or stops the process at every first try of a molecule; see FAKE_MARKS."""
    embed(PROBE, recipe)
    conn.send(Ready())
    while True:
        (candidate,) = conn.recv().items
        mark = Path(f"{os.environ['FAKE_MARKS']}-{candidate.line}")
        if not mark.exists():
            mark.touch()
            stop = candidate.line % 2
            os.kill(os.getpid(), signal.SIGSTOP if stop else signal.SIGKILL)
        conn.send(Done(embed(candidate, recipe)))


def outage(conn, recipe):
    """A machine on which every embedding ends its process."""
    conn.send(Ready())
    conn.recv()
    os.kill(os.getpid(), signal.SIGKILL)


def no_start(conn, recipe):
    """RDKit is broken."""
    sys.exit("no RDKit here")
