"""What becomes of a result: a table to read, records, JSON, Molden and cube files."""
