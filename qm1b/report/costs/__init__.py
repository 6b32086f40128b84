"""What a dataset costs on a simulated Pod."""
