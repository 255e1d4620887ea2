"""Train the potential: timed epochs with validation, then one epoch under the profiler."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from perfproof.training.embedded.compiling import compile_parts
from perfproof.training.embedded.context import Context, mean_over_ranks, save_checkpoint
from perfproof.training.embedded.hydragnn import data
from perfproof.training.embedded.hydragnn.lines import Printer
from perfproof.training.embedded.hydragnn.loss import losses
from perfproof.training.embedded.hydragnn.model import Potential
from perfproof.training.embedded.hydragnn.settings import Architecture, Data
from perfproof.training.embedded.loading import endless
from perfproof.training.embedded.profiling import profiler, window_steps
from perfproof.training.embedded.records import StepClock, StepRecord
from perfproof.training.embedded.report import write_report

AfterStep = Callable[[], None]


class Trainer:
    """Model, optimizer, loaders and printer of one rank."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.printer = Printer(context.is_first)
        self.loaders = {split: data.loader(context, split) for split in data.SPLITS}
        self.bare = build_model(context)
        self.model = context.replicated(self.bare)
        rate = context.training.learning_rate
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)

    def report(self, profiled_epoch: int | None = None) -> None:
        """Write what this rank realised."""
        write_report(self.context, self.bare, self.loaders["train"], {}, profiled_epoch)

    def step(self, batch: data.Graphs) -> list[float]:
        """One optimizer step; the errors of both tasks. Waits for the device."""
        self.optimizer.zero_grad()
        errors = losses(self.model, batch, train=True)
        errors.total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.context.synchronize()
        return [errors.energy_per_atom.item(), errors.forces.item()]

    def epoch(
        self,
        number: int,
        batches: Iterable[data.Graphs],
        steps: int,
        after_step: AfterStep | None = None,
    ) -> list[float]:
        """Train `steps` steps and return the mean errors. `after_step` marks a profiled epoch."""
        context, printer = self.context, self.printer
        seen: list[list[float]] = []
        clock = StepClock.now()
        with printer.bar("Train", steps) as bar:
            # The loader's start is part of the first step, as it is part of the epoch.
            source = iter(itertools.islice(batches, steps))
            while (batch := next(source, None)) is not None:
                waited = clock.elapsed_s()
                errors = self.step(batch.to(context.device, context.dtype))
                if after_step:
                    after_step()
                record = StepRecord(
                    number,
                    len(seen),
                    *clock.next_step(),
                    samples=len(batch.energy),
                    dataload_s=waited,
                    loss=sum(errors),
                    profiled=after_step is not None,
                )
                seen.append(errors)
                bar.update()
                printer.say(record.line())
                if number == 0 and len(seen) == 1:
                    self._after_first_step(batch)
                    clock = StepClock.now()
        return self._mean(torch.tensor(seen, device=context.device).mean(0))

    def _after_first_step(self, batch: data.Graphs) -> None:
        """Say and write what was realised. The clock starts anew: no step pays for it."""
        kind = batch.to(self.context.device, self.context.dtype).positions.dtype
        self.printer.say(f"[precision-diagnostic] first_batch_float_dtype={kind}")
        self.report()

    def evaluate(self, name: str, split: str) -> list[float]:
        """Mean errors on a split."""
        context, found = self.context, []
        loader = self.loaders[split]
        with self.printer.bar(name, len(loader)) as bar:
            for batch in loader:
                errors = losses(self.model, batch.to(context.device, context.dtype), train=False)
                found.append(torch.stack([errors.energy_per_atom, errors.forces]).detach())
                bar.update()
        return self._mean(torch.stack(found).float().mean(0))

    def timed_epoch(self, number: int) -> None:
        """One epoch as users train it, with validation and checkpoint where the recipe asks."""
        loader, training = self.loaders["train"], self.context.training
        steps = min(len(loader), training.batches_per_epoch)
        set_epoch(loader.sampler, number)
        trained = self.epoch(number, loader, steps)
        if number == 0:
            self.printer.peak_memory(self.context.device)
        if training.validate_epochs:
            checked = [self.evaluate("Validate", "validate"), self.evaluate("Test", "test")]
            self.printer.epoch(number, [trained, *checked])
        if training.save_checkpoints:
            save_checkpoint(self.context, self.bare, number)

    def profiled_epoch(self, number: int) -> None:
        """A short epoch under the profiler. None of its steps is a timed one."""
        set_epoch(self.loaders["train"].sampler, number)
        batches = endless(lambda: self.loaders["train"])
        with profiler(self.context) as recording:
            self.epoch(number, batches, window_steps(self.context), recording.step)
        events = len(recording.events() or ())  # type: ignore[no-untyped-call]
        self.printer.say(f"Total number of profiled events: {events} at epoch {number}")
        self.report(profiled_epoch=number)

    def _mean(self, errors: Tensor) -> list[float]:
        return [float(value) for value in mean_over_ranks(errors)]


def build_model(context: Context) -> Potential:
    """The potential on its device, the same on every rank, compiled where the recipe asks."""
    training = context.training
    torch.manual_seed(training.seed)
    model = Potential(
        Architecture.model_validate(context.recipe.architecture),
        Data.model_validate(context.recipe.data).species,
        recomputes=training.activation_checkpointing,
    ).to(context.device, context.dtype)
    # Every batch has other numbers of atoms and edges.
    compile_parts(model.layers, training, dynamic=True)
    return model


def set_epoch(sampler: object, epoch: int) -> None:
    """A new order for a new epoch, the same on all ranks."""
    if isinstance(sampler, torch.utils.data.DistributedSampler):
        sampler.set_epoch(epoch)


def count_parameters(model: nn.Module) -> int:
    """Number of trained values."""
    return sum(parameter.numel() for parameter in model.parameters())


def train(context: Context) -> None:
    """Train as one rank, from first line to last."""
    trainer = Trainer(context)
    printer, training = trainer.printer, context.training
    if context.who.world_size > 1:
        backend = torch.distributed.get_backend()
        printer.say(f"Distributed data parallel: {backend}, {context.who.world_size} ranks")
    printer.log(f"All (total, MB): {count_parameters(trainer.bare)}")
    printer.precision(training.dtype, next(trainer.bare.parameters()).dtype)
    begun = time.perf_counter()
    for number in range(training.epochs):
        trainer.timed_epoch(number)
    if context.recipe.profile.enabled:
        trainer.profiled_epoch(training.epochs)
    elapsed = time.perf_counter() - begun
    printer.log(f"Process 0 - Local timer:  train_validate_test  :  {elapsed:.2f}")
