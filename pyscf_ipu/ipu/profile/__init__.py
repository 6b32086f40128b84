"""The result of a simulation: data, totals, text, trace and page."""
