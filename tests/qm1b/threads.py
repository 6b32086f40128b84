"""Threads in the place of worker processes, where a test is not about processes.

A process takes half a second of a core to begin, and a run has three of them.
"""

import os
import threading
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection


class Thread:
    """As much of a process as `qm1b.process.worker` asks of one."""

    exitcode = 0

    def __init__(self, target, args, daemon):
        theirs, _, _, _, self._serve, self._args = args
        self._conn = Connection(os.dup(theirs.fileno()))  # the caller closes its own
        self.pid = os.getpid()

    def start(self):
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with self._conn, suppress(EOFError, BrokenPipeError, ConnectionResetError):
            self._serve(self._conn, *self._args)

    def join(self, timeout=None):
        """It ends by itself when the pipe is closed."""

    def kill(self):
        """Cannot be done."""


class Threads:
    """In the place of a context of `multiprocessing`."""

    Pipe = staticmethod(Pipe)
    Process = Thread
