"""The machine around the work: worker processes, locks, files, Ctrl-C, the terminal."""
