"""Collectors: one a node beside the training, and the one file of samples they leave."""

FOLDER = "telemetry"
"""Where they write, in the run directory."""
