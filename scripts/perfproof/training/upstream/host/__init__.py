"""What runs inside a real trainer's own process: standard library and PyTorch, nothing else.

The trainer's environment need not have this repository's packages. `python <this directory>` runs
a trainer's script in-process under the hooks that the plan asks for.
"""
