"""What a run says of its collectors may find nobody listening: a cancelled job loses its `tee`."""

from __future__ import annotations

import io
import sys

import pytest

from perfproof.training.collectors import collection


class _Gone(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_is_gone_is_no_fault_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", _Gone())
    collection._say("telemetry: sampler on n1: collected")
