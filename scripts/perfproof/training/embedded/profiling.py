"""The profiler window: an epoch of its own after the timed ones, one trace a rank."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch.profiler import ProfilerActivity, profile, schedule

from perfproof.training.embedded.context import Context


def window_steps(context: Context) -> int:
    """Steps of the profiled epoch."""
    window = context.recipe.profile
    return window.wait + window.warmup + window.active


@contextlib.contextmanager
def profiler(context: Context) -> Iterator[profile]:
    """A profiler that writes `traces/rank<N>.pt.trace.json.gz` when its active steps are done.

    Call `step()` on it after each training step.
    """
    window = context.recipe.profile
    folder = context.run_dir / "traces"
    folder.mkdir(exist_ok=True)
    path = folder / f"rank{context.who.rank}.pt.trace.json.gz"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if context.on_gpu else [])]
    with profile(
        activities=activities,
        schedule=schedule(wait=window.wait, warmup=window.warmup, active=window.active, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
        record_shapes=window.record_shapes,
        with_stack=window.with_stack,
    ) as recording:
        yield recording
