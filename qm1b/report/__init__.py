"""Datasets and planned runs in numbers and pictures."""
