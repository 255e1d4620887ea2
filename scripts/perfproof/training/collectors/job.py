"""Which run the samples of this node belong to: device metrics carry no job of their own."""

from __future__ import annotations

from collections.abc import Iterator

from perfproof.training.collectors.reading import Reading


class Job:
    """The series that queries join the others with."""

    def __init__(self, job_id: str, nodes: int, kind: str) -> None:
        """`kind` is `slurm`, or `local` where no scheduler numbers the runs."""
        labels = {"jobid": job_id, "nodes": str(nodes), "jobstep": "-1", "type": kind}
        self._labels = tuple(sorted(labels.items()))

    def read(self) -> Iterator[Reading]:
        """One reading."""
        yield "rmsjob_info", self._labels, 1.0
