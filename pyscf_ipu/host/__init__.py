"""The machine that this runs on: its cores and memory, and the folder of compiled programs."""
