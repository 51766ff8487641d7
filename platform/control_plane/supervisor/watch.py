"""The supervising loop: start in order, restart what dies, stop in the order given.

Single-threaded on purpose (see child.py). Signals only count; the loop acts on them, so that no step is cut in half.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FrameType

from control_plane.supervisor.backoff import RestartBackoff
from control_plane.supervisor.child import Child
from control_plane.supervisor.progress import Progress

POLL_S = 0.1
STOP_WITHIN_S = 15.0
TAIL_LINES = 8
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StartError(Exception):
    """A child did not become ready; the text says which and shows its last words."""


class StopRequested(Exception):  # noqa: N818 - a wish, not an error
    """A stop signal came while something was being waited for."""


@dataclass(slots=True)
class Watched:
    child: Child
    backoff: RestartBackoff = field(default_factory=RestartBackoff)
    restart_at_s: float | None = None


class Supervisor:
    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.stop_count = 0
        self._watched: dict[str, Watched] = {}

    def install_signal_handlers(self) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_stop_signal)

    def _on_stop_signal(self, number: int, frame: FrameType | None) -> None:
        self.stop_count += 1

    def start(self, *children: Child) -> None:
        """Start all at once and wait until each is ready. Raises StartError or StopRequested; stop() ends them then."""
        for child in children:
            self._watched[child.name] = Watched(child)
            child.start()
        for child in children:
            with self.progress.step(f"starting {child.name}"):
                self.wait_until(child.is_ready, child.spec.ready_within_s, partial(self._check_alive, children))

    def wait_until(self, condition: Callable[[], bool], timeout_s: float, check: Callable[[], None]) -> None:
        deadline_s = time.monotonic() + timeout_s
        while not condition():
            if self.stop_count:
                raise StopRequested
            check()
            if time.monotonic() > deadline_s:
                raise StartError(f"not ready after {timeout_s:.0f} s")
            self.progress.tick()
            time.sleep(POLL_S)

    def _check_alive(self, children: Sequence[Child]) -> None:
        """All that were started together: brokers wait for each other, and would wait for a dead one in vain."""
        for child in children:
            if not child.is_running:
                raise StartError(f"{child.name} ended with code {child.exit_code}. {_last_words(child)}")

    def watch(self) -> None:
        """Returns when a stop signal has come."""
        while not self.stop_count:
            for watched in self._watched.values():
                self._look_after(watched, time.monotonic())
            time.sleep(POLL_S)

    def _look_after(self, watched: Watched, now_s: float) -> None:
        if watched.child.is_running:
            return
        if watched.restart_at_s is None:
            self._report_death(watched, now_s)
        elif now_s >= watched.restart_at_s:
            watched.restart_at_s = None
            watched.child.start()
            self.progress.say(f"{watched.child.name}: started again")

    def _report_death(self, watched: Watched, now_s: float) -> None:
        child = watched.child
        delay_s = watched.backoff.on_death(child.lived_s)
        watched.restart_at_s = now_s + delay_s
        self.progress.say(
            f"{child.name} ended with code {child.exit_code}; starts again in {delay_s:.0f} s. {_last_words(child)}"
        )

    def stop(self, order: Sequence[Sequence[str]]) -> None:
        """Stop the groups one after the other, each group's children at once; a second signal kills what is left.

        Brokers are one group: the last of them could hand nothing over, and would only wait for the others.
        """
        stops_before = self.stop_count
        for names in order:
            known = [self._watched[name].child for name in names if name in self._watched]
            running = [child for child in known if child.is_running]
            for child in running:
                child.send_signal(signal.SIGTERM)
            for child in running:
                self._wait_for_end(child, lambda: self.stop_count > max(1, stops_before))

    def _wait_for_end(self, child: Child, is_hurried: Callable[[], bool]) -> None:
        with self.progress.step(f"stopping {child.name}"):
            deadline_s = time.monotonic() + STOP_WITHIN_S
            while not child.wait(POLL_S):
                self.progress.tick()
                if is_hurried() or time.monotonic() > deadline_s:
                    self.progress.say(f"{child.name} does not stop: killed")
                    child.kill()


def _last_words(child: Child) -> str:
    lines = "\n".join(f"    {line}" for line in child.log_tail(TAIL_LINES))
    return f"The end of {child.log_path}:\n{lines}"
