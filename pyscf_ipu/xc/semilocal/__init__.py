"""The pieces that functionals consist of: variables, uniform gas, gradient corrections."""
