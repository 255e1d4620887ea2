"""Kineto traces to tables: a tolerant fast reader, exact nanoseconds, unions of intervals."""
