"""The folder of a run: shards, manifest, what is missing."""
