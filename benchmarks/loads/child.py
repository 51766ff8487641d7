"""A load in a process of its own: `run(function, arguments...)`, or `start` for several at once. Ended in all cases."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Generic, TypeVar

TIMEOUT_S = 900.0
Result = TypeVar("Result")
_context = multiprocessing.get_context("spawn")


class Child(Generic[Result]):
    def __init__(self, function: Callable[..., Result], *arguments: Any, **named: Any) -> None:
        self._receiver, sender = _context.Pipe(duplex=False)
        self._process = _context.Process(target=_call, args=(sender, function, arguments, named), daemon=True)
        self._process.start()
        sender.close()

    def __enter__(self) -> Child[Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._process.is_alive() and kind is not None:
            self._process.terminate()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._receiver.close()

    @property
    def is_done(self) -> bool:
        return self._receiver.poll()

    def result(self) -> Result:
        if not self._receiver.poll(TIMEOUT_S):
            raise TimeoutError(f"a load took more than {TIMEOUT_S:.0f} s")
        is_ok, value = self._receiver.recv()
        if not is_ok:
            raise RuntimeError(f"a load failed:\n{value}")
        return value


def run(function: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
    with Child(function, *arguments, **named) as child:
        return child.result()


def _call(sender: Connection, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    try:
        sender.send((True, function(*arguments, **named)))
    except Exception:
        sender.send((False, traceback.format_exc()))
    finally:
        sender.close()
