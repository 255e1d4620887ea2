"""The real trainers, unmodified, run under a small host; see `docs/upstream.md`."""

from perfproof.training.upstream.command import command, finish

__all__ = ["command", "finish"]
