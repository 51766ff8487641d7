"""Links do to bytes what a network does: hold them back, one way or both, delay them, reset, refuse, lose answers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tests.chaos.link import Link, Links, Way
from tests.ports import own_port

SHORT_S = 0.2


@contextmanager
def echo_server() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=_echo_all, args=(server,), daemon=True).start()
        yield server.getsockname()[1]


def _echo_all(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=_echo, args=(connection,), daemon=True).start()


def _echo(connection: socket.socket) -> None:
    with connection:
        try:
            while data := connection.recv(4096):
                connection.sendall(data)
        except ConnectionResetError:
            return


@pytest.fixture
def link() -> Iterator[Link]:
    links = Links()
    with echo_server() as port:
        yield links.add(own_port(), ("127.0.0.1", port))
        links.close()


@contextmanager
def connected(link: Link) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", link.port), timeout=5) as connection:
        yield connection


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(SHORT_S)
    try:
        return connection.recv(100) == b"never"
    except TimeoutError:
        return True
    finally:
        connection.settimeout(5)


def test_a_whole_link_passes_bytes_both_ways(link: Link) -> None:
    with connected(link) as connection:
        connection.sendall(b"ping")
        assert connection.recv(100) == b"ping"


@pytest.mark.parametrize("way", ["forward", "backward"])
def test_a_cut_holds_bytes_back_and_healing_delivers_them(link: Link, way: str) -> None:
    with connected(link) as connection:
        connection.sendall(b"one")
        assert connection.recv(100) == b"one"
        link.set_way(way, Way.HOLD)
        connection.sendall(b"two")
        assert is_silent(connection)
        link.set()
        assert connection.recv(100) == b"two"


def test_a_delay_is_felt(link: Link) -> None:
    with connected(link) as connection:
        link.set(delay_s=SHORT_S)
        started = time.monotonic()
        connection.sendall(b"slow")
        assert connection.recv(100) == b"slow"
        assert time.monotonic() - started >= 2 * SHORT_S


def test_a_reset_ends_connections_and_lets_new_ones_pass(link: Link) -> None:
    with connected(link) as connection:
        connection.sendall(b"one")
        connection.recv(100)
        link.reset()
        with pytest.raises(ConnectionResetError):
            connection.recv(100)
    with connected(link) as connection:
        connection.sendall(b"two")
        assert connection.recv(100) == b"two"


def test_a_refusing_link_refuses_until_it_admits(link: Link) -> None:
    link.refuse()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", link.port), timeout=5)
    link.admit()
    with connected(link) as connection:
        connection.sendall(b"back")
        assert connection.recv(100) == b"back"


def test_the_answer_of_a_produce_request_is_lost_and_no_other(link: Link) -> None:
    produce, metadata = b"\0\0\0\x08\0\0\0\x09abcd", b"\0\0\0\x08\0\x03\0\x09abcd"
    link.lose_answers(1)
    with connected(link) as connection:
        connection.sendall(metadata)
        assert connection.recv(100) == metadata
        connection.sendall(produce)
        with pytest.raises(ConnectionResetError):
            connection.recv(100)
    with connected(link) as connection:
        connection.sendall(produce)
        assert connection.recv(100) == produce
    assert link.lost_answer_count == 1
