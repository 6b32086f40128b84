"""The processes at work: workers, what to think of those that die, Ctrl-C, the terminal."""
