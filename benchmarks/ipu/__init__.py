"""The simulated IPU: its model beside measurements, and what it predicts."""
