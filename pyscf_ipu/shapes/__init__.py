"""What a compiled program depends on (shape, layout, plan) and reads (tables, conformer)."""
