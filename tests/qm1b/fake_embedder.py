"""An RDKit worker that hangs on "N" and dies on "O"; imported by worker processes."""

import os
import time

from qm1b.conformers.embed import embed


def serve(conn, recipe):
    while True:
        candidate = conn.recv()
        if candidate.smiles == "N":
            time.sleep(1000)
        if candidate.smiles == "O":
            os._exit(9)
        conn.send(embed(candidate, recipe))
