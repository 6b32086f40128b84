"""The machine that this runs on: its cores, and the folder where compiled programs are kept."""
