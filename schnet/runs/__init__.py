"""The folder of a run: settings, checkpoints, logs, results and pictures."""
