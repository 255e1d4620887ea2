"""Peaks of GPUs: `config/gpus/*.yaml`. Every number names the public document it is from."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from perfproof.schema.base import Strict
from perfproof.schema.config import Id


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as fault:
        raise ValueError(f"not a regular expression ({fault})") from None
    return text


Pattern = Annotated[str, AfterValidator(_is_pattern)]
PeakType = Literal[
    "float64",
    "float64_vector",
    "float32",
    "float32_vector",
    "tf32",
    "float16",
    "bfloat16",
    "float8",
    "int8",
    "float4",
]


class Figure(Strict):
    """One number and where it stands."""

    value: float = Field(gt=0)
    source: str = Field(min_length=4, description="the vendor's public document, by name")
    note: str = Field("", description="how the value follows, where it is not printed as it is")


class GpuPeaks(Strict):
    """One GPU as a program sees it; `config/gpus/<gpu>.yaml`. Rates are peaks without sparsity."""

    gpu: Id = Field(description="name of the entry; equals the file's name")
    vendor: Literal["AMD", "NVIDIA"]
    description: str = Field(description="which product, in which form")
    names: list[Pattern] = Field(
        min_length=1, description="regular expressions; one matches the whole name of the device"
    )
    clock: str = Field(description="at which clock the rates hold, and what that means")
    tflops: dict[PeakType, Figure] = Field(
        min_length=1,
        description="10^12 operations per second by type: of the matrix units where they take the "
        "type, else of the vector units; `…_vector` of the vector units where both do",
    )
    memory_gb: Figure = Field(description="capacity of the device memory, 10^9 bytes")
    memory_gb_s: Figure = Field(description="peak bandwidth of the device memory, 10^9 bytes/s")
    link_gb_s: Figure | None = Field(
        description="peak bandwidth to the other GPUs of a node, all links and both directions "
        "together, 10^9 bytes/s; null: no document says it for this unit"
    )

    @model_validator(mode="after")
    def _vector_beside_matrix(self) -> Self:
        for kind in ("float64", "float32"):
            if f"{kind}_vector" in self.tflops and kind not in self.tflops:
                raise ValueError(f"{kind}_vector without {kind}")
        return self
