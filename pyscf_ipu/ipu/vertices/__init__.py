"""The cost of the program of a single tile: cycles, scratch memory, trips of its loops."""
