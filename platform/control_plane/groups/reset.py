"""Where a group's offsets would go, pure: a wish and what is in the logs in, steps out. Kafka's own meanings of each.

An offset outside of the log is brought to its nearer end, and a time after the last record means the end, as
kafka-consumer-groups does it. The CSV is that tool's: `topic,partition,offset`, or with the group in front.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from control_plane.engine.groups import LogRange, Place
from control_plane.refusals import Invalid

CSV_LINES_MAX = 20_000
INT64_MAX = (1 << 63) - 1
TIMESTAMP_MS_MAX = 253_402_300_799_999
"""The end of the year 9999: what is later was meant in another unit."""


class To(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    OFFSET = "offset"
    SHIFT = "shift"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Scope:
    topic: str
    partitions: tuple[int, ...] | None = None
    """None: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    to: To
    scopes: tuple[Scope, ...] | None = None
    """None: every topic in which the group has an offset."""
    timestamp_ms: int = 0
    duration_ms: int = 0
    offset: int = 0
    shift: int = 0
    offsets: Mapping[Place, int] = field(default_factory=dict)

    def look_up_ms(self, now_ms: int) -> int | None:
        """The time to be looked up in the logs, where the wish is about one."""
        if self.to is To.TIMESTAMP:
            return self.timestamp_ms
        return max(0, now_ms - self.duration_ms) if self.to is To.DURATION else None


@dataclass(frozen=True, slots=True)
class Step:
    topic: str
    partition: int
    before: int | None
    after: int
    log: LogRange

    @property
    def skipped_count(self) -> int:
        """Records that nobody in the group will have read."""
        return 0 if self.before is None else max(0, self.after - max(self.before, self.log.start_offset))

    @property
    def replayed_count(self) -> int:
        """Records that will be read again."""
        return 0 if self.before is None else max(0, min(self.before, self.log.end_offset) - self.after)


def steps_of(
    wish: Wish,
    places: Iterable[Place],
    committed: Mapping[Place, int],
    logs: Mapping[Place, LogRange],
    found_at: Mapping[Place, int | None],
) -> list[Step]:
    return [
        Step(
            *place, committed.get(place), _target(wish, place, committed.get(place), logs[place], found_at), logs[place]
        )
        for place in places
    ]


def _target(
    wish: Wish, place: Place, committed: int | None, log: LogRange, found_at: Mapping[Place, int | None]
) -> int:
    match wish.to:
        case To.EARLIEST:
            return log.start_offset
        case To.LATEST:
            return log.end_offset
        case To.CURRENT:
            return log.end_offset if committed is None else committed
        case To.TIMESTAMP | To.DURATION:
            found = found_at.get(place)
            return log.end_offset if found is None else found
        case To.OFFSET:
            return _inside(wish.offset, log)
        case To.SHIFT:
            if committed is None:
                raise Invalid("shift", f"the group has no offset in {place[0]}-{place[1]} to shift from")
            return _inside(committed + wish.shift, log)
        case To.FILE:
            return _inside(wish.offsets[place], log)


def _inside(offset: int, log: LogRange) -> int:
    return min(max(offset, log.start_offset), log.end_offset)


# --- files


def parse_csv(text: str, group: str) -> dict[Place, int]:
    """Raises Invalid with the line that is wrong. Lines of other groups are left out."""
    offsets: dict[Place, int] = {}
    for number, fields in _lines(text):
        if number > CSV_LINES_MAX:
            raise Invalid("csv", f"more than {CSV_LINES_MAX} lines")
        cells = [cell.strip() for cell in fields]
        if not any(cells):
            continue
        if len(cells) == 4:
            if cells[0] != group:
                continue
            cells = cells[1:]
        offsets |= _line(number, cells)
    if not offsets:
        raise Invalid("csv", "there is no line `topic,partition,offset` in it")
    return offsets


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    number = 0
    try:
        for number, fields in enumerate(csv.reader(io.StringIO(text)), start=1):
            yield number, fields
    except csv.Error as error:
        raise Invalid("csv", f"line {number + 1} cannot be read: {error}") from error


def _line(number: int, cells: Sequence[str]) -> dict[Place, int]:
    if len(cells) != 3 or not all(_is_number(cell) for cell in cells[1:]) or not cells[0]:
        raise Invalid("csv", f"line {number} is not `topic,partition,offset`")
    return {(cells[0], int(cells[1])): int(cells[2])}


def _is_number(cell: str) -> bool:
    return cell.isascii() and cell.isdecimal() and len(cell) <= 19 and int(cell) <= INT64_MAX


def to_csv(offsets: Mapping[Place, int]) -> str:
    """As kafka-consumer-groups --reset-offsets --from-file takes it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for (topic, partition), offset in sorted(offsets.items()):
        writer.writerow((topic, partition, offset))
    return out.getvalue()


# --- the same by hand


def cli_text(wish: Wish, group: str, bootstrap: str, *, is_dry_run: bool) -> str:
    words = ["kafka-consumer-groups", "--bootstrap-server", bootstrap, "--group", group, "--reset-offsets"]
    if wish.to is not To.FILE:
        words += _scope_words(wish.scopes)
    words += [*_target_words(wish), "--dry-run" if is_dry_run else "--execute"]
    return shlex.join(words)


def _scope_words(scopes: tuple[Scope, ...] | None) -> list[str]:
    if scopes is None:
        return ["--all-topics"]
    words = []
    for scope in scopes:
        chosen = "" if scope.partitions is None else ":" + ",".join(map(str, scope.partitions))
        words += ["--topic", scope.topic + chosen]
    return words


def _target_words(wish: Wish) -> list[str]:
    match wish.to:
        case To.EARLIEST | To.LATEST | To.CURRENT:
            return [f"--to-{wish.to}"]
        case To.TIMESTAMP:
            at = datetime.fromtimestamp(wish.timestamp_ms // 1000, UTC)
            return ["--to-datetime", at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{wish.timestamp_ms % 1000:03d}Z"]
        case To.DURATION:
            return ["--by-duration", iso_duration(wish.duration_ms)]
        case To.OFFSET:
            return ["--to-offset", str(wish.offset)]
        case To.SHIFT:
            return ["--shift-by", str(wish.shift)]
        case To.FILE:
            return ["--from-file", "offsets.csv"]


def iso_duration(duration_ms: int) -> str:
    seconds, ms = divmod(duration_ms, 1000)
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3_600)
    minutes, seconds = divmod(seconds, 60)
    rest = f"{seconds}.{ms:03d}" if ms else str(seconds)
    return f"P{days}DT{hours}H{minutes}M{rest}S"
