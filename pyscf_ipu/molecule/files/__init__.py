"""Files of molecules: their text, their frames and entries, and what each of these says."""
