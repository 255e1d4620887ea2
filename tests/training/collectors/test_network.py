from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from perfproof.training.collectors.network import Network

Found = dict[tuple[str, str, str], float]


def read(ports: Path) -> Found:
    found = {}
    for name, labels, value in Network(ports).read():
        where = dict(labels)
        found[name.removeprefix("omnistat_network_"), where["device_class"], where["interface"]] = (
            value
        )
    return found


def port(root: Path, device: str, **counters: int) -> None:
    for name, value in counters.items():
        path = root / device / "ports" / "1" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")


def test_interfaces_are_those_of_this_machine(tmp_path: Path) -> None:
    before = psutil.net_io_counters(pernic=True)
    found = read(tmp_path)
    assert {name for _, _, name in found} == set(before) - {"lo"}
    for name in set(before) - {"lo"}:
        assert found["rx_bytes", "net", name] >= before[name].bytes_recv


def test_infiniband_counts_words_of_four_bytes(tmp_path: Path) -> None:
    port(
        tmp_path,
        "mlx5_0",
        counters__port_rcv_data=10,
        counters__port_xmit_data=20,
        counters__port_xmit_discards=3,
        hw_counters__np_ecn_marked_roce_packets=4,
        hw_counters__rp_cnp_handled=5,
        hw_counters__rp_cnp_ignored=1,
    )
    found = read(tmp_path)
    where = ("infiniband", "mlx5_0:1")
    assert found["rx_bytes", *where] == 40
    assert found["tx_bytes", *where] == 80
    assert found["tx_discarded_packets", *where] == 3
    assert found["rx_ecn_marked_packets", *where] == 4
    assert found["rx_cnp_packets", *where] == 6
    assert ("rx_packets", *where) not in found


@pytest.mark.parametrize(
    ("device", "counters", "kind"),
    [
        (
            "ionic_0",
            {"hw_counters__rx_rdma_ucast_bytes": 7, "hw_counters__rx_rdma_mcast_bytes": 1},
            "ionic",
        ),
        ("bnxt_re0", {"hw_counters__rx_bytes": 8, "counters__port_rcv_data": 99}, "bnxt_re"),
    ],
)
def test_roce_cards_count_bytes(
    device: str, counters: dict[str, int], kind: str, tmp_path: Path
) -> None:
    port(tmp_path, device, **counters)
    assert read(tmp_path)["rx_bytes", kind, f"{device}:1"] == 8


def test_a_port_that_goes_away_is_left_out(tmp_path: Path) -> None:
    port(tmp_path, "mlx5_0", counters__port_rcv_data=1, counters__port_xmit_data=2)
    network = Network(tmp_path)
    (tmp_path / "mlx5_0/ports/1/counters/port_rcv_data").unlink()
    names = [name for name, labels, _ in network.read() if ("interface", "mlx5_0:1") in labels]
    assert names == ["omnistat_network_tx_bytes"]
