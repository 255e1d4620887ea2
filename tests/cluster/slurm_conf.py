"""Configuration files of a SLURM cluster whose nodes are all this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DBD_USER = "slurm"
# Legal names of nodes in which the executor's check of options sees options.
AWKWARD_NAMES = (*(f"gpu-{letter}" for letter in "cntpeoACDJN"), "gpu-J01", "x--parsable")


@dataclass(frozen=True)
class Layout:
    """What the cluster has. `absent` nodes are configured but have no daemon: they stay down."""

    nodes: tuple[str, ...] = ("a1", "a2", "b1", "b2")
    absent: tuple[str, ...] = ()
    cpus: int = 8
    gpus: int = 8
    memory_mb: int = 65536
    accounting: bool = False
    memory_limits: bool = False
    min_job_age_s: int = 3600
    partition: str = "batch"
    features: str = "none"

    @property
    def ports(self) -> int:
        """TCP ports it needs: controller, accounting, database, one a node."""
        return 3 + len(self.nodes) + len(self.absent)


def config_files(layout: Layout, root: Path, host: str, port: int) -> dict[str, str]:
    """File name -> text, for the directory `root/etc`. `port` is the first of a free range."""
    files = {
        "slurm.conf": _slurm_conf(layout, root, host, port),
        "gres.conf": _gres_conf(layout, root),
        "cgroup.conf": _cgroup_conf(layout),
        "prolog.sh": f'#!/bin/sh\n[ ! -e "{root}/badprolog/$SLURMD_NODENAME" ]\n',
        "hosts": "".join(f"127.0.0.1 {name}\n" for name in ("localhost", host, *layout.nodes)),
    }
    if layout.accounting:
        files["slurmdbd.conf"] = _slurmdbd_conf(root, host, port)
    return files


def _slurm_conf(layout: Layout, root: Path, host: str, port: int) -> str:
    names = ",".join(layout.nodes)
    lines = [
        "ClusterName=test",
        f"SlurmctldHost={host}(127.0.0.1)",
        f"SlurmctldPort={port}",
        "SlurmUser=root",
        "SlurmdUser=root",
        *_authentication(root),
        "CredType=cred/munge",
        *_accounting(layout, root, port),
        *_places(root),
        *_behaviour(layout),
        *(_node(layout, name, port + 3 + i) for i, name in enumerate(layout.nodes)),
        *(
            _node(layout, name, port + 3 + len(layout.nodes) + i, "DOWN")
            for i, name in enumerate(layout.absent)
        ),
        *(
            f"PartitionName={name} Nodes={names} State=UP MaxTime=INFINITE PriorityTier={tier}"
            + (" Default=YES" if name == layout.partition else "")
            for name, tier in (("low", 1), (layout.partition, 10), ("high", 100))
        ),
    ]
    return "\n".join(lines) + "\n"


def _authentication(root: Path) -> list[str]:
    # Credentials that expire soon let a requeued job start again after seconds, not two minutes.
    return ["AuthType=auth/munge", f"AuthInfo=socket={root}/run/munge.sock,cred_expire=5"]


def _accounting(layout: Layout, root: Path, port: int) -> list[str]:
    if not layout.accounting:
        return ["AccountingStorageType=accounting_storage/none"]
    return [
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={port + 1}",
        "AccountingStoreFlags=job_comment",
        # Without it the client commands look for the system's own munge socket.
        f"AccountingStoragePass={root}/run/munge.sock",
    ]


def _places(root: Path) -> list[str]:
    return [
        f"StateSaveLocation={root}/ctld",
        f"SlurmdSpoolDir={root}/spool/%n",
        f"SlurmctldPidFile={root}/run/slurmctld.pid",
        f"SlurmdPidFile={root}/run/slurmd-%n.pid",
        f"SlurmctldLogFile={root}/log/slurmctld.log",
        f"SlurmdLogFile={root}/log/slurmd-%n.log",
        f"Prolog={root}/etc/prolog.sh",
    ]


def _behaviour(layout: Layout) -> list[str]:
    return [
        "ProctrackType=proctrack/linuxproc",
        f"TaskPlugin={'task/cgroup' if layout.memory_limits else 'task/none'}",
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=task=1",
        "SwitchType=switch/none",
        "MpiDefault=none",
        "SlurmdParameters=config_overrides",
        "SchedulerType=sched/backfill",
        "SchedulerParameters=sched_interval=5,bf_interval=1,batch_sched_delay=0",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE",
        "GresTypes=gpu",
        "ReturnToService=1",
        "InactiveLimit=0",
        "KillWait=2",
        f"MinJobAge={layout.min_job_age_s}",
        "SlurmctldTimeout=30",
        "SlurmdTimeout=10",
        "MessageTimeout=10",
        "BatchStartTimeout=10",
        "TCPTimeout=2",
        # Without a default every job takes a node's whole memory and no two share a node.
        "DefMemPerNode=1000",
    ]


def _node(layout: Layout, name: str, port: int, state: str = "UNKNOWN") -> str:
    return (
        f"NodeName={name} NodeHostname={name} NodeAddr=127.0.0.1 Port={port} State={state} "
        f"CPUs={layout.cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={layout.cpus} "
        f"ThreadsPerCore=1 RealMemory={layout.memory_mb} Gres=gpu:{layout.gpus} "
        f"Feature={layout.features}"
    )


def _gres_conf(layout: Layout, root: Path) -> str:
    # Without device files slurmd counts no GPU and the node becomes invalid.
    names = ",".join(layout.nodes)
    files = f"{root}/gpu/g[0-{layout.gpus - 1}]"
    return f"NodeName={names} Name=gpu File={files} Flags=amd_gpu_env\n"


def _cgroup_conf(layout: Layout) -> str:
    # SLURM 22.05 has no way to say that there are none; cgroup/v1 is loaded and left unused.
    limits = "ConstrainRAMSpace=yes\nAllowedRAMSpace=100\n" if layout.memory_limits else ""
    return "CgroupPlugin=cgroup/v1\n" + limits


def _slurmdbd_conf(root: Path, host: str, port: int) -> str:
    lines = [
        *_authentication(root),
        f"DbdHost={host}",
        "DbdAddr=127.0.0.1",
        f"DbdPort={port + 1}",
        "SlurmUser=root",
        f"LogFile={root}/log/slurmdbd.log",
        f"PidFile={root}/run/slurmdbd.pid",
        "StorageType=accounting_storage/mysql",
        "StorageHost=127.0.0.1",
        f"StoragePort={port + 2}",
        f"StorageUser={DBD_USER}",
        f"StoragePass={DBD_USER}",
        "StorageLoc=slurm_acct",
        "CommitDelay=1",
    ]
    return "\n".join(lines) + "\n"
