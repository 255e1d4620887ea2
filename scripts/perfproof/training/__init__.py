"""Training: from a recipe to a run directory that holds log, traces and manifest.

`resolve` turns a trial's name into a recipe, `launch` runs it, `rank` is one of its processes.
"""
