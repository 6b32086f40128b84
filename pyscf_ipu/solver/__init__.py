"""Programs kept and run: compiled once per shape, cached on disk, results back on the host."""
