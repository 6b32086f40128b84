"""Other file formats of the same rows; each module reads and writes one."""
