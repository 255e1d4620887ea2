"""One rank of an embedded run: set up device and process group, then train."""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import os
import signal
from pathlib import Path

import torch

from perfproof.core.errors import InputError
from perfproof.core.files import read_record
from perfproof.schema.config import ResolvedRecipe
from perfproof.training.device import choose
from perfproof.training.embedded.context import Context, process_group
from perfproof.training.identity import Identity, identity
from perfproof.training.manifest import RECIPE_FILE
from perfproof.training.upstream.host.rank_hooks import run_hooks


def main() -> None:
    """`python -m perfproof.training.rank`; errors end it with their traceback in the log."""
    cli = argparse.ArgumentParser(description="Train as one rank.")
    cli.add_argument("--run-dir", type=Path, required=True)
    cli.add_argument("--device", choices=("cpu", "gpu"), required=True)
    arguments = cli.parse_args()
    # Where a rank hangs is asked for so.
    faulthandler.register(signal.SIGUSR1)
    resolved = read_record(arguments.run_dir / RECIPE_FILE, ResolvedRecipe)
    who = identity(os.environ)
    check_world(resolved, who)
    settle_threads()
    device = choose(arguments.device, who.local_rank)
    hooked = run_hooks(resolved.hooks)
    with process_group(who, device):
        context = Context(resolved, arguments.run_dir, who, device, hooked)
        model = resolved.recipe.model
        importlib.import_module(f"perfproof.training.embedded.{model}.train").train(context)


def settle_threads() -> None:
    """Take the threads that the environment gives, before any other thread can change the number.

    A loader that pins memory does so in a thread that sets PyTorch's count to 1, which a thread
    that has not yet asked for its own count then gets.
    """
    torch.get_num_threads()


def check_world(resolved: ResolvedRecipe, who: Identity) -> None:
    """Refuse to train alone, silently, what should train together."""
    if who.world_size != resolved.ranks:
        found = f"{who.world_size} rank(s) started"
        raise InputError("environment", found, f"{resolved.ranks}, as the recipe says")


if __name__ == "__main__":
    main()
