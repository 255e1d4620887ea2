"""Network interfaces of this node, and InfiniBand or RoCE ports with their fabric counters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from perfproof.training.collectors.reading import Labels, Reading

_SYS = Path("/sys/class/infiniband")
# Metric -> files below a port, summed; the first group of which one exists is taken. InfiniBand
# counts data in words of four bytes, drivers of RoCE-only cards in bytes.
_PORT: dict[str, tuple[tuple[tuple[str, ...], int], ...]] = {
    "rx_bytes": (
        (("hw_counters/rx_rdma_ucast_bytes", "hw_counters/rx_rdma_mcast_bytes"), 1),
        (("hw_counters/rx_bytes",), 1),
        (("counters/port_rcv_data",), 4),
    ),
    "tx_bytes": (
        (("hw_counters/tx_rdma_ucast_bytes", "hw_counters/tx_rdma_mcast_bytes"), 1),
        (("hw_counters/tx_bytes",), 1),
        (("counters/port_xmit_data",), 4),
    ),
    "rx_packets": (
        (("hw_counters/rx_rdma_ucast_pkts", "hw_counters/rx_rdma_mcast_pkts"), 1),
        (("hw_counters/rx_pkts",), 1),
        (("counters/port_rcv_packets",), 1),
    ),
    "tx_packets": (
        (("hw_counters/tx_rdma_ucast_pkts", "hw_counters/tx_rdma_mcast_pkts"), 1),
        (("hw_counters/tx_pkts",), 1),
        (("counters/port_xmit_packets",), 1),
    ),
    "rx_out_of_sequence_packets": (
        (("hw_counters/out_of_sequence",), 1),
        (("hw_counters/req_rx_pkt_seq_err",), 1),
    ),
    "tx_retransmitted_packets": ((("hw_counters/tx_rdma_retx_pkts",), 1),),
    "rx_discarded_packets": ((("hw_counters/rx_roce_discards",), 1),),
    "tx_discarded_packets": (
        (("hw_counters/tx_roce_discards",), 1),
        (("counters/port_xmit_discards",), 1),
    ),
    "rx_ecn_marked_packets": (
        (("hw_counters/np_ecn_marked_roce_packets",), 1),
        (("hw_counters/rx_rdma_ecn_pkts",), 1),
    ),
    "rx_cnp_packets": (
        (("hw_counters/rp_cnp_handled", "hw_counters/rp_cnp_ignored"), 1),
        (("hw_counters/rx_rdma_cnp_pkts",), 1),
    ),
    "rx_error_packets": ((("counters/port_rcv_errors",), 1),),
}
_CLASSES = {"ionic": "ionic", "bnxt_re": "bnxt_re"}


@dataclass(frozen=True)
class _Counter:
    name: str
    labels: Labels
    files: tuple[Path, ...]
    factor: int


class Network:
    """Bytes since the interfaces came up; which ports there are is looked up once."""

    def __init__(self, ports: Path = _SYS) -> None:
        """`ports`: the kernel's directory of InfiniBand devices."""
        self._counters = list(_found(ports))

    def read(self) -> Iterator[Reading]:
        """One reading."""
        for name, counters in sorted(psutil.net_io_counters(pernic=True).items()):
            if name != "lo":
                labels = (("device_class", "net"), ("interface", name))
                yield "omnistat_network_rx_bytes", labels, float(counters.bytes_recv)
                yield "omnistat_network_tx_bytes", labels, float(counters.bytes_sent)
        for counter in self._counters:
            # A port that went down may refuse; its siblings do not.
            with contextlib.suppress(OSError, ValueError):
                total = sum(int(path.read_bytes()) for path in counter.files)
                yield counter.name, counter.labels, float(total * counter.factor)


def _found(ports: Path) -> Iterator[_Counter]:
    for port in sorted(ports.glob("*/ports/*")):
        device = port.parent.parent.name
        kind = next((c for prefix, c in _CLASSES.items() if device.startswith(prefix)), None)
        labels = (
            ("device_class", kind or "infiniband"),
            ("interface", f"{device}:{port.name}"),
        )
        for metric, groups in _PORT.items():
            for names, factor in groups:
                files = tuple(port / name for name in names if (port / name).is_file())
                if files:
                    yield _Counter(f"omnistat_network_{metric}", labels, files, factor)
                    break
