"""What the engine logs in a run: kept for people, and watched, since nothing may end in an unexpected exception."""

from __future__ import annotations

import logging
import traceback
from types import TracebackType
from typing import Self

from broker_engine.client.errors import KafkaError
from broker_engine.errors import BrokerError
from broker_engine.simulator.sim_loop import SimLoop
from broker_engine.simulator.sim_process import ProcessDied

_EXPECTED = (BrokerError, KafkaError, OSError, ProcessDied)
"""What faults make; anything else is a bug."""


class EngineLog(logging.Handler):
    def __init__(self, loop: SimLoop, lines: list[str], *, is_everything_kept: bool) -> None:
        super().__init__(logging.DEBUG if is_everything_kept else logging.WARNING)
        self.unexpected: list[tuple[str, str]] = []
        self._loop = loop
        self._lines = lines

    def __enter__(self) -> Self:
        root = logging.getLogger()
        self._before = (root.handlers[:], root.level)
        root.handlers[:] = [self]
        root.setLevel(self.level)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        root = logging.getLogger()
        root.handlers[:], level = self._before
        root.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        name = record.name.removeprefix("broker_engine.")
        line = f"{self._loop.now_s:9.4f} {self._loop.current.name} {name}: {record.getMessage()}"
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line += f": {error!r}"
            if not isinstance(error, _EXPECTED):
                where = "".join(traceback.format_exception(error))
                self.unexpected.append(("no unexpected error", f"{line}\n{where}"))
        self._lines.append(line)
