#!/usr/bin/env python3
"""A program with the command line of Omnistat's user mode, which records how it is called.

It samples nothing: on `--stopexporters` it pushes what an exporter would have, to the store that
the configuration names. `OMNISTAT_STANDIN` picks a fault.
"""

import configparser
import json
import os
import sys
import time
import urllib.request
from pathlib import Path

OPTIONS = "--configfile --startexporters --stopexporters --interval --pushinterval --localjob"


def main() -> None:
    words, fault = sys.argv[1:], os.environ.get("OMNISTAT_STANDIN", "")
    if words == ["--help"]:
        print(f"usage: omnistat-usermode {OPTIONS}")
        return
    config = configparser.ConfigParser()
    config.read(words[words.index("--configfile") + 1])
    with Path("calls.txt").open("a") as calls:
        names = ("SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES", "http_proxy")
        env = {name: os.environ[name] for name in names if name in os.environ}
        calls.write(json.dumps({"words": words, "env": env}) + "\n")
    if "--startexporters" in words:
        start(fault)
    if "--stopexporters" in words:
        push(config)


def start(fault: str) -> None:
    if fault == "crashes":
        sys.exit("ERROR: Unable to load amdsmi\nsee the log")
    hosts = os.environ.get("SLURM_JOB_NODELIST", "localhost").split(",")
    missing = hosts[-1:] if fault == "missing" else []
    for host in missing:
        print(f"Missing exporter on {host}")
    print(f"{len(hosts) - len(missing)} of {len(hosts)} exporters available")
    if fault != "missing":
        Path("started").write_text(str(time.time()))


def push(config: configparser.ConfigParser) -> None:
    if not Path("started").exists():
        return
    begun = float(Path("started").read_text())
    usermode = config["omnistat.usermode"]
    url = "http://127.0.0.1:{}/api/v1/import/prometheus".format(usermode["external_victoria_port"])
    node = os.environ.get("SLURM_JOB_NODELIST", os.uname().nodename).split(",")[0]
    series = f'rocm_utilization_percentage{{card="0",instance="{node}"}}'
    # One of them by a clock that is ahead.
    text = "".join(f"{series} {90 + n} {int(1000 * (begun + 30 * n))}\n" for n in range(3))
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, text.encode()).read()


if __name__ == "__main__":
    main()
