"""Telemetry of a run: samples of its devices, summed up over its steady window."""
