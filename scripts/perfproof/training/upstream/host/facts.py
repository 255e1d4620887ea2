"""What rank 0 saw of itself once it trained: settings as realised, not as asked for."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from .hooks import compile_modules
from .plan import HostError, Plan
from .ranks import Rank


class Realised:
    """Holds what the trainer really does to what the recipe asks, and reports it."""

    def __init__(self, plan: Plan, rank: Rank, path: Path) -> None:
        self.effects: dict[str, str] = {}
        self._plan, self._rank, self._path = plan, rank, path
        self._dtype: str | None = None
        self._workers = 0
        self._model: Any = None
        self._reported = False

    def loader(self, loader: Any) -> None:
        """The training loader. It has no batch size where it batches by cost."""
        plan, kept = self._plan, bool(loader.persistent_workers)
        self._same("data-loader workers", loader.num_workers, plan.num_workers)
        self._same("persistent workers", kept, plan.persistent_workers)
        if loader.batch_size is not None:
            self._same("samples a batch", loader.batch_size, plan.batch_size)
        self.effects["batch_size"] = str(loader.batch_size or "by cost")
        self.effects["persistent_workers"] = "on" if kept else "off"
        self._workers = loader.num_workers

    def model(self, model: Any, compiled: list[Any]) -> None:
        """The model before its first forward pass, and its parts to compile where asked.

        A layer tells the type it works in: mixed precision does not show in the parameters. Where
        no hook sees the model, its type stays unknown.
        """
        import torch

        if self._model is not None:
            return
        self._model = model
        parameter = next(iter(model.parameters()))
        self.effects["parameter_dtype"] = _name(parameter.dtype)
        self.effects["compile"] = "off" if self._plan.compile_mode is None else "on"
        if self._plan.compile_mode is not None:
            self.effects["compiled"] = compile_modules(compiled, self._plan.compile_mode)
        layer = _linear(model)
        if layer is None:
            self._dtype = self.effects["parameter_dtype"]
        else:
            saw: Any = self._saw
            if self._plan.compile_mode is not None:  # it removes itself: not to be traced
                compiler: Any = torch.compiler
                saw = compiler.disable(saw)
            self._hook = layer.register_forward_pre_hook(saw)

    def _saw(self, layer: Any, _: Any) -> None:
        import torch

        self._hook.remove()
        device = layer.weight.device.type
        autocast = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if autocast else layer.weight.dtype
        self._dtype = _name(dtype)
        self._same("type of the computation", self._dtype, self._plan.dtype)

    def _same(self, what: str, found: Any, asked: Any) -> None:
        if found != asked:
            raise HostError(f"{what}: the trainer has {found}, the recipe asks for {asked}")

    def begins(self, profiled: bool) -> None:
        """Nothing to do: facts are known after a step."""

    def step(self) -> None:
        """Write the report after the first step, so that a run that dies later has one."""
        if self._reported:
            return
        self._reported = True
        if self._model is not None:
            self.effects["activation_checkpointing"] = _recomputes(self._model)
        self.effects |= _process()
        self.write()

    def ends(self) -> None:
        """Nothing to do."""

    def write(self) -> None:
        """Write `rank0.json`, on rank 0 only."""
        if self._rank.rank == 0:
            self._path.write_text(json.dumps(self.report(), sort_keys=True, indent=2) + "\n")

    def report(self) -> dict[str, Any]:
        """The fields of `RankReport`."""
        profiled = self._plan.profiled_epoch
        return {
            "world_size": self._rank.world,
            "device": _device(),
            "versions": self._versions(),
            "dtype": self._dtype or self.effects.get("parameter_dtype", "unknown"),
            "num_workers": self._workers,
            "env": {name: os.environ.get(name, "(unset)") for name in self._plan.env},
            "effects": dict(sorted(self.effects.items())),
            "profiled_epochs": [] if profiled is None else [profiled],
        }

    def _versions(self) -> dict[str, Any]:
        import torch

        found: dict[str, Any] = {
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda,
            "rocm": torch.version.hip,
        }
        reasons = {"cuda": "not_applicable", "rocm": "not_applicable"}
        if not torch.cuda.is_available():
            reasons["driver"] = "no_device"
        return _reasoned(found | self._plan.versions, reasons)


def _recomputes(model: Any) -> str:
    """Wrapped layers (ORBIT-2) or the model's own switch (HydraGNN)."""
    wrapped = any(type(part).__name__ == "CheckpointWrapper" for part in model.modules())
    own = getattr(getattr(model, "module", model), "conv_checkpointing", False)
    return "on" if wrapped or own else "off"


def _process() -> dict[str, str]:
    """What holds for the whole process."""
    import torch

    tunable: Any = torch.cuda.tunable
    chosen = torch.cuda.is_available() and tunable.is_enabled()
    return {
        "intra_op_threads": str(torch.get_num_threads()),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "tunable_op": ("tuning" if tunable.tuning_is_enabled() else "on") if chosen else "off",
    }


def _linear(model: Any) -> Any:
    """The first plain linear layer (TorchScript modules take no Python hooks)."""
    import torch

    return next((m for m in model.modules() if type(m) is torch.nn.Linear), None)


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _device() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        machine = platform.machine()
        cpu = {"kind": "cpu", "name": _cpu_name() or machine, "vendor": "none", "arch": machine}
        return _reasoned(cpu | {"memory_bytes": None, "count": 0}, {"memory_bytes": "no_device"})
    about = torch.cuda.get_device_properties(torch.cuda.current_device())
    amd = torch.version.hip is not None
    arch = about.gcnArchName.split(":")[0] if amd else f"sm_{about.major}{about.minor}"
    return {
        "kind": "gpu",
        "name": about.name,
        "vendor": "amd" if amd else "nvidia",
        "arch": arch,
        "memory_bytes": about.total_memory,
        "count": torch.cuda.device_count(),
        "reasons": {},
    }


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _reasoned(fields: dict[str, Any], reasons: dict[str, str]) -> dict[str, Any]:
    """The fields with a reason for each null, as every record of this workflow has them."""
    nulls = [name for name, value in fields.items() if value is None]
    return fields | {"reasons": {name: reasons.get(name, "not_recorded") for name in nulls}}
