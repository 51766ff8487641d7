"""Version ranges as protocol documents write them: "4", "4-7", "4+", "none"."""

from __future__ import annotations

from dataclasses import dataclass

NEWEST = 0x7FFF


@dataclass(frozen=True, slots=True)
class VersionRange:
    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


NO_VERSION = VersionRange(0, -1)
EVERY_VERSION = VersionRange(0, NEWEST)


def parse_versions(text: str) -> VersionRange:
    if text == "none":
        return NO_VERSION
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), NEWEST)
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))
