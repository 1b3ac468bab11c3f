"""Synthetic speech with exact phone times, and the performance that goes with it."""
