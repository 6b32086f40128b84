"""Conformers in, results out: worker processes, batches, retries."""
