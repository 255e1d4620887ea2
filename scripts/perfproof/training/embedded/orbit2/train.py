"""Train the downscaler: timed epochs, then one epoch under the profiler."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from perfproof.training.embedded.compiling import compile_parts
from perfproof.training.embedded.context import Context, save_checkpoint
from perfproof.training.embedded.loading import endless
from perfproof.training.embedded.orbit2 import lines
from perfproof.training.embedded.orbit2.attention import attention_backends, realised_attention
from perfproof.training.embedded.orbit2.data import loader
from perfproof.training.embedded.orbit2.edm import residual_loss
from perfproof.training.embedded.orbit2.model import Denoiser
from perfproof.training.embedded.orbit2.settings import Architecture, Data
from perfproof.training.embedded.profiling import profiler, window_steps
from perfproof.training.embedded.records import StepClock, StepRecord
from perfproof.training.embedded.report import write_report

Batch = tuple[Tensor, Tensor]


class Trainer:
    """Model, optimizer, loader and noise of one rank."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.loader = loader(context)
        self.bare = build_model(context)
        self.model = context.replicated(self.bare)
        rate = context.training.learning_rate
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)
        # Each rank draws noise of its own; weights come from the seed alone.
        seed = context.training.seed * 1_000_003 + context.who.rank
        self.noise = torch.Generator(context.device).manual_seed(seed)

    def report(self, profiled_epoch: int | None = None) -> None:
        """Write what this rank realised."""
        effects = realised_attention(self.context)
        write_report(self.context, self.bare, self.loader, effects, profiled_epoch)

    def step(self, epoch: int, index: int, batch: Batch) -> Tensor:
        """One optimizer step with its lines. tic4-tic1 is synchronised and excludes loading."""
        context = self.context
        low, high = (part.to(context.device, context.dtype, non_blocking=True) for part in batch)
        context.synchronize()
        begun = time.perf_counter()
        loss = residual_loss(self.model, low, high, self.noise)
        lines.batch_lines(context, epoch, index, high, loss)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        context.synchronize()
        seconds = time.perf_counter() - begun
        rates = [group["lr"] for group in self.optimizer.param_groups]
        lines.step_lines(context, index, rates, seconds)
        return loss.detach()

    def epoch(
        self,
        number: int,
        batches: Iterable[Batch],
        steps: int,
        after_step: Callable[[], None] | None = None,
    ) -> None:
        """At most `steps` steps. `after_step` is called after each."""
        lines.epoch_start(self.context, number)
        total = torch.zeros((), device=self.context.device)
        clock = StepClock.now()
        # The loader's start is part of the first step, as it is part of the epoch.
        for index, batch in enumerate(itertools.islice(batches, steps)):
            waited = clock.elapsed_s()
            loss = self.step(number, index, batch)
            total += loss
            if after_step:
                after_step()
            record = StepRecord(
                number,
                index,
                *clock.next_step(),
                samples=len(batch[1]),
                dataload_s=waited,
                loss=float(loss),
                profiled=after_step is not None,
            )
            lines.step_record(self.context, record)
            if number == index == 0:
                self.report()
                clock = StepClock.now()
        lines.epoch_end(self.context, number, total)

    def profiled_epoch(self, number: int) -> None:
        """A short epoch under the profiler. None of its steps is a timed one."""
        batches = endless(lambda: self.loader)
        with profiler(self.context) as recording:
            self.epoch(number, batches, window_steps(self.context), recording.step)
        self.report(profiled_epoch=number)


def build_model(context: Context) -> Denoiser:
    """The denoiser on its device, the same on every rank, its blocks compiled where asked."""
    training = context.training
    torch.manual_seed(training.seed)
    model = Denoiser(
        Architecture.model_validate(context.recipe.architecture),
        Data.model_validate(context.recipe.data),
        recomputes=training.activation_checkpointing,
    ).to(context.device, context.dtype)
    compile_parts(model.blocks, training)
    return model


def train(context: Context) -> None:
    """Train as one rank, from first line to last."""
    training = context.training
    with attention_backends(training.sdpa_backend):
        trainer = Trainer(context)
        lines.header(context, trainer.bare)
        for number in range(training.epochs):
            trainer.epoch(number, trainer.loader, training.batches_per_epoch)
            if training.save_checkpoints:
                save_checkpoint(context, trainer.bare, number)
        if context.recipe.profile.enabled:
            trainer.profiled_epoch(training.epochs)
