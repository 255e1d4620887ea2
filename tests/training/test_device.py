from __future__ import annotations

import pytest
import torch

from perfproof.core.errors import InputError
from perfproof.schema.base import Reason
from perfproof.training.device import choose, device_record


def test_cpu_has_no_device_memory() -> None:
    record = device_record(choose("cpu", 3))
    assert (record.kind, record.vendor, record.count) == ("cpu", "none", 0)
    assert record.reasons == {"memory_bytes": Reason.NO_DEVICE}
    assert record.name


def test_a_rank_without_a_gpu_of_its_own_is_refused() -> None:
    missing = torch.cuda.device_count()
    with pytest.raises(InputError, match=f"{missing} GPUs visible"):
        choose("gpu", missing)
