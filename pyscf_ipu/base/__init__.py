"""What every room stands on: errors, units, text for a terminal, the command line, the computer."""
