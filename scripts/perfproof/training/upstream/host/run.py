"""One rank: hooks, the trainer's script, then: was that the run that was asked for?"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from . import hydragnn, orbit2
from .facts import Realised
from .hooks import CheckpointGate, WorldGuard, emulate_cuda, keep_workers, script_names, select_sdpa
from .plan import HostError, Plan, read_plan
from .rank_hooks import run_hooks
from .ranks import Rank, address_environment, identify, meeting_point
from .steps import DeviceClock, HostClock, Recorder
from .trace import Profiler, collect, trace_path

FAILURE_FILE = "failure.txt"


class Host:
    """The hooks of one rank, in force from construction."""

    def __init__(self, plan: Plan, rank: Rank, run_dir: Path) -> None:
        self._plan, self._rank, self._run_dir = plan, rank, run_dir
        self._guard = WorldGuard(rank, meeting_point(os.environ))
        if "cpu" in plan.shims:
            emulate_cuda()
        if plan.persistent_workers:
            keep_workers()
        self.recorder = Recorder(rank.rank, _clock, _say)
        self._realised = Realised(plan, rank, run_dir / "rank0.json")
        self._gate = None if plan.save_checkpoints else CheckpointGate(self.recorder)
        if plan.window is not None:
            trace = trace_path(run_dir, rank.rank)
            self.recorder.observers.append(Profiler(plan.window, trace))
        self.recorder.observers.append(self._realised)
        self._realised.effects["sdpa_backends"] = select_sdpa(plan.sdpa_backend)
        for name, asked in (("shims", plan.shims), ("preload", plan.preload)):
            if asked:
                self._realised.effects[name] = "+".join(asked)
        self._realised.effects |= run_hooks(plan.hooks)
        for module in plan.preload:
            importlib.import_module(module)
        trainer: Any = {"hydragnn": hydragnn, "orbit2": orbit2}[plan.trainer]
        trainer.install(plan, self.recorder, self._realised)

    def finish(self) -> None:
        """After the script: was it the run that the plan asks for? Complete what it leaves."""
        self.recorder.epoch_ends()
        self._guard.check()
        plan = self._plan
        if self.recorder.epochs != plan.epochs:
            made = self.recorder.epochs
            raise HostError(f"the trainer made {made} epoch(s), the recipe needs {plan.epochs}")
        if plan.profiled_epoch is not None and plan.window is None:
            trace = trace_path(self._run_dir, self._rank.rank)
            collect(Path("logs"), trace, self.recorder.steps)
        if self._gate is not None:
            self._realised.effects["checkpoints_dropped"] = str(self._gate.dropped)
        _say_memory(self._rank.rank)
        self._realised.write()


def prepare_environment(plan: Plan) -> None:
    """Host names for the trainer; no empty variables, some of which HydraGNN reads as numbers."""
    os.environ.update(address_environment(os.environ))
    for name in plan.env:
        if os.environ.get(name) == "":
            del os.environ[name]


def run_script(command: list[str], names: dict[str, Any]) -> None:
    """Run a script as if it had been started alone; a non-zero `sys.exit` in it is an error."""
    sys.argv = command
    try:
        runpy.run_path(command[0], init_globals=names, run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            raise HostError(f"the trainer's script ended with {end.code!r}") from None


def main() -> None:
    """Exit 0 only if the script ended well and was the run that the plan asks for."""
    arguments = _arguments()
    faulthandler.register(signal.SIGUSR1)  # where a rank hangs is asked for so
    plan, host = read_plan(arguments.plan), None
    try:
        rank = identify(os.environ, plan)
        prepare_environment(plan)
        sys.path[0] = str(Path(arguments.script[0]).parent)
        host = Host(plan, rank, arguments.run_dir)
        run_script(arguments.script, script_names(plan.shims))
        host.finish()
    except (Exception, HostError) as fault:
        _fail(fault, host, arguments.run_dir)


def _fail(fault: BaseException, host: Host | None, run_dir: Path) -> NoReturn:
    """Say why in one line and end at once: an orderly MPI exit would wait for the other ranks."""
    if not isinstance(fault, HostError):
        traceback.print_exception(type(fault), fault, fault.__traceback__)
    if host is not None:
        with contextlib.suppress(Exception, HostError):
            host.recorder.epoch_ends()
    kind = "" if isinstance(fault, HostError) else f"{type(fault).__name__}: "
    text = " ".join(str(fault).split())[:300]
    _say(f"[perfproof] failed reason={kind}{text}")
    with contextlib.suppress(FileExistsError), (run_dir / FAILURE_FILE).open("x") as stream:
        stream.write(f"{kind}{text}\n")  # the first rank to fail; others fail for its sake
    sys.stderr.flush()
    os._exit(1)


def _arguments() -> argparse.Namespace:
    cli = argparse.ArgumentParser(description="Run a trainer's script under hooks.")
    cli.add_argument("--plan", type=Path, required=True, help="plan of the run, JSON")
    cli.add_argument("--run-dir", type=Path, required=True, help="where results go")
    cli.add_argument(
        "--script", nargs=argparse.REMAINDER, required=True, help="the script and its arguments"
    )
    return cli.parse_args()


def _clock() -> HostClock | DeviceClock:
    import torch

    return DeviceClock() if torch.cuda.is_available() else HostClock()


def _say_memory(rank: int) -> None:
    import torch

    if torch.cuda.is_available():
        peak = torch.cuda.max_memory_reserved() / 1e9
        _say(f"[perfproof] memory peak_reserved_gb={peak:.6f} rank={rank}")


def _say(line: str) -> None:
    # One write a line: ranks share the log.
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
