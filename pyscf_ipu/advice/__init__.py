"""Sentences that point from what somebody asked for to the nearest thing that exists."""
