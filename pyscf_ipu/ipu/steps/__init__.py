"""Compute sets, exchanges and tile memory: the steps that a program is priced as."""
