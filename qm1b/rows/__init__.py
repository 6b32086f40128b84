"""Rows and columns: schema, batches, identity of molecules, doubtful rows."""
