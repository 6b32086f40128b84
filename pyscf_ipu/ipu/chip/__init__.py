"""The machine: published figures, exchange, matrix unit, library operations."""
