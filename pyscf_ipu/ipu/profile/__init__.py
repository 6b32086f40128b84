"""The result of a simulation as data: steps, cycles, memory, regions."""
