"""Who holds a TCP port of this machine, so that a refusal to start can name the culprit."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class TakenPort:
    """A port that cannot be bound. `pid` is None where the system hides the holder from us (another user's process)."""

    port: int
    purpose: str
    pid: int | None
    command: str

    def __str__(self) -> str:
        holder = f"process {self.pid} ({self.command})" if self.pid else "a process of another user"
        return f"port {self.port} ({self.purpose}) is taken by {holder}"


def taken_ports(wanted: Iterable[tuple[str, int]]) -> list[TakenPort]:
    """Those of the wanted (purpose, port) pairs that cannot be bound on the loopback address now."""
    return [_taken_by(purpose, port) for purpose, port in wanted if not _is_free(port)]


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As every server of ours binds: connections of the last run that linger in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def _taken_by(purpose: str, port: int) -> TakenPort:
    pid = _listening_pid(port)
    return TakenPort(port, purpose, pid, _command_of(pid))


def _listening_pid(port: int) -> int | None:
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return None
    holders = [
        row.pid for row in connections if row.status == psutil.CONN_LISTEN and row.laddr and row.laddr[1] == port
    ]
    return next((pid for pid in holders if pid), None)


def _command_of(pid: int | None) -> str:
    if pid is None:
        return "unknown"
    try:
        process = psutil.Process(pid)
        return " ".join(process.cmdline())[:120] or process.name()
    except psutil.Error:
        return "unknown"
