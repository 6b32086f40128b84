"""Exports of `qm1b export`, read with the programs that they are for."""
