"""A taken port is named with its holder."""

from __future__ import annotations

import os
import socket

from control_plane.supervisor.ports import taken_ports


def test_a_taken_port_names_the_process_that_holds_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        [taken] = taken_ports([("dashboard", port)])
    assert taken.pid == os.getpid()
    assert "python" in taken.command
    assert str(taken).startswith(f"port {port} (dashboard) is taken by process {os.getpid()} (")


def test_a_free_port_is_not_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
    assert taken_ports([("dashboard", port)]) == []
