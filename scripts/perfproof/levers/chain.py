"""Which files a loop's rules want: the chain of steps, and where it ends.

A step asks for one run; Snakemake makes it and evaluates the chain again. Budgets and the STOP file
end the chain from outside: the label of the ending is part of the outputs' path, so that a raised
budget, or a STOP that was taken away, goes on where the chain ended.
"""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakemake.io import ancient

from perfproof.core.dag import Plan
from perfproof.core.files import digest_bytes, read_record
from perfproof.levers.faults import fault_of
from perfproof.levers.files import EXPLORING, chains, last_step, run_dir
from perfproof.levers.recorded import defining, options
from perfproof.schema.loop import LoopState, ProbeChoice

CHAIN = r"steps|[a-z]+(-[0-9.]+)?/confirm"
_RESULTS = Path("results")


@dataclass(frozen=True)
class Ending:
    """Where a chain ends: its last step, and why."""

    last: str
    label: str


class Chain:
    """The files of one invocation's loop. `step_file` asks Snakemake's checkpoint for a step."""

    def __init__(
        self,
        plan: Plan,
        step_file: Callable[[str, str, str, int], str],
        choice: Callable[[str], str],
    ) -> None:
        """Nothing is read before a rule of the loop asks."""
        self._plan = plan
        self._step_file = step_file
        self._choice = choice

    @functools.cached_property
    def loop(self) -> str:
        """Name of the loop that the settings ask for.

        Checked here too: a copied tree has nothing that would make Snakemake define it again.
        """
        # Imported here: it loads SciPy, which an invocation without a loop need not wait for.
        from perfproof.levers.define import check_unchanged, define, loop_id

        settings = self._plan.settings
        spec = define(self._plan.root, settings)
        name = loop_id(settings, spec)
        first = _RESULTS / settings.model / "loops" / name / EXPLORING / "0.json"
        check_unchanged(spec, first)
        return name

    @property
    def settings_json(self) -> str:
        """The settings that define the loop: not its budgets, which may change."""
        return defining(self._plan.settings)

    def step_inputs(self, wildcards: Any) -> dict[str, Any]:
        """The step before, and what it asked for.

        All ancient: a copied tree has new times, and a step is a function of contents.
        """
        model, loop, chain, s = wildcards.model, wildcards.loop, wildcards.chain, int(wildcards.s)
        if s == 0 and chain == EXPLORING:
            return {"previous": ancient(f"results/{model}/loops/{loop}/loop.json")}
        if s == 0:
            return {"previous": ancient(self.ending(model, loop).last)}
        previous = self._step_file(model, loop, chain, s - 1)
        return {"previous": ancient(previous), "run": [ancient(f) for f in wanted(previous)]}

    def ending(self, model: str, loop: str) -> Ending:
        """Where exploring ends: by itself, by a budget, by STOP."""
        folder, chosen = _RESULTS / model / "loops" / loop, self._plan.settings
        reserve = 2 * chosen.decision.confirmation_pairs
        step = 0
        while True:
            path = self._step_file(model, loop, EXPLORING, step)
            state = load(path)
            if state.action.kind == "stop":
                return Ending(path, "complete")
            made = (folder / EXPLORING / f"{step + 1}.json").exists()
            if not made and (folder / "STOP").exists():
                return Ending(path, f"stopped-{step}")
            if step + reserve >= chosen.budget:
                return Ending(path, f"runs-{chosen.budget}")
            if chosen.node_hours and _hours_after(state, reserve + 1) > chosen.node_hours:
                return Ending(path, f"hours-{chosen.node_hours:g}")
            step += 1

    def target(self, _: Any) -> str:
        """What `optimizer_loop` makes."""
        model = self._plan.settings.model
        label = self.ending(model, self.loop).label
        return f"results/{model}/loops/{self.loop}/{label}/story.md"

    @functools.cached_property
    def _replay(self) -> dict[str, str]:
        return options(self._plan.settings, _RESULTS)

    def replay_target(self, _: Any) -> str:
        """What `loop_replay` makes."""
        model = self._plan.settings.model
        return f"results/{model}/replays/{self._replay['name']}/replay.json"

    def replay_option(self, name: str) -> Callable[[Any], str]:
        """One option of the replay that the settings ask for."""
        return lambda _: self._replay[name]

    @functools.cached_property
    def probe(self) -> str:
        """Name of the loop that tries a remedy for the invocation's run."""
        return f"probe-{digest_bytes(self._plan.run.encode())[:8]}"

    def probe_files(self, wildcards: Any) -> list[Any]:
        """What a report says of its remedy probe: the choice, and the last step of its runs."""
        plan = self._plan
        if not (plan.settings.probe and plan.launches and wildcards.run == plan.run):
            return []
        choice = self._choice(wildcards.run)
        if read_record(Path(choice), ProbeChoice).lever is None:
            return [choice]
        return [choice, ancient(self._last(plan.settings.model, self.probe, EXPLORING))]

    def pin(self, wildcards: Any) -> str:
        """`--nodelist=…` for a run that the loop's newest step asks for; else nothing.

        What is compared should run on the same nodes. SLURM's answer decides: nodes that are on the
        exclude list, or gone, cannot be asked for, and the loop then starts its evidence anew.
        """
        settings = self._plan.settings
        if not settings.decision.pin_nodes or self._plan.cluster.launcher != "srun":
            return ""
        state = self._asking(wildcards)
        last = state.results[-1] if state and state.results else None
        if state is None or last is None:
            return ""
        if last.cause and fault_of(last.cause).again == "other nodes":
            return ""
        nodes = next((r.node_list for r in reversed(state.results) if r.node_list), None)
        return f"--nodelist={','.join(nodes)}" if nodes else ""

    def _asking(self, wildcards: Any) -> LoopState | None:
        """The newest step of the loop, if it asks for this run."""
        loops = _RESULTS / wildcards.model / "loops"
        if not loops.is_dir():
            # Most launches are no loop's: they need not wait for its name.
            return None
        newest = [load(str(last_step(chain))) for chain in chains(loops / self.loop)]
        state = max(newest, key=lambda s: len(s.results), default=None)
        asked = (wildcards.trial, int(wildcards.rep))
        asks = state is not None and asked in [(m.trial, m.rep) for m in state.action.measure]
        return state if asks else None

    def report_inputs(self, wildcards: Any) -> dict[str, Any]:
        """The last step, and the last of the confirmation where there is one."""
        ending = self.ending(wildcards.model, wildcards.loop)
        found: dict[str, Any] = {"last": ancient(ending.last)}
        if not ending.label.startswith("stopped"):
            found["confirmation"] = ancient(
                self._last(wildcards.model, wildcards.loop, f"{ending.label}/confirm")
            )
        return found

    @staticmethod
    def confirm_option(_: Any, input: Any) -> str:
        """The option that names the confirmation's last step, where there is one."""
        found = getattr(input, "confirmation", None)
        return f"--confirm {shlex.quote(str(found))}" if found else ""

    def _last(self, model: str, loop: str, chain: str) -> str:
        """The step at which a chain stops by itself."""
        step = 0
        while True:
            path = self._step_file(model, loop, chain, step)
            if load(path).action.kind == "stop":
                return path
            step += 1


def wanted(step: str) -> list[str]:
    """Files of the run that a step asked for."""
    state = load(step)
    (asked,) = state.action.measure
    run = run_dir(_RESULTS, state.spec, asked)
    files = [run / "foms.json"]
    if state.action.with_claims:
        files += [run / "verified" / "trace.json", run / "verified" / "telemetry.json"]
    return [str(path) for path in files]


def _hours_after(state: LoopState, runs: int) -> float:
    """Node-hours once `runs` more are made, as dear as those so far were on average."""
    spent = math.fsum(result.node_hours or 0.0 for result in state.results)
    return spent + runs * spent / len(state.results) if state.results else 0.0


def load(path: str) -> LoopState:
    """A step's state; each version of a file is read once."""
    return _load(path, Path(path).stat().st_mtime_ns)


@functools.lru_cache(maxsize=4096)
def _load(path: str, _mtime_ns: int) -> LoopState:
    return read_record(Path(path), LoopState)


def loop_of(plan: Plan, checkpoints: Any) -> Chain:
    """The invocation's loop; launches of it stay on the nodes it began on."""

    def step_file(model: str, loop: str, chain: str, s: int) -> str:
        return str(checkpoints.loop_step.get(model=model, loop=loop, chain=chain, s=s).output.step)

    def choice(run: str) -> str:
        return str(checkpoints.probe_choose.get(run=run).output.choice)

    chain = Chain(plan, step_file, choice)
    plan.pin = chain.pin
    return chain
