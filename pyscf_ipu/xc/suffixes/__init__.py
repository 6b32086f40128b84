"""What a functional's name says of dispersion, and the parameters of each correction."""
