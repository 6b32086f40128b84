"""The dataset generator: speed, memory, long runs, the level of theory of QM1B."""
