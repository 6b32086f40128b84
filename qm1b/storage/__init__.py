"""Files and folders: written whole, locked, filled at once, and read with suspicion."""
