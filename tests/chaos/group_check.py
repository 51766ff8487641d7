"""What a group and a chain of transactions promise, held against their journals. Pure.

Offsets: what was committed and acknowledged is what a member that begins later is told, or something newer. At least
once: every record that was promised came to some member. Exactly once: what a transformer read stands once in its
output. The log's own promises are checked by `broker_engine.simulator.history`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set

from broker_engine.simulator.history.rows import Partition, Poll, Row
from tests.chaos.journal import Asked, Commit, Entry, Fetched

SHOWN = 5


def offsets_that_went_back(entries: Sequence[Entry]) -> list[str]:
    """A member was told less than what had been acknowledged before it asked, or what nobody ever committed."""
    attempts = defaultdict[Partition, list[Asked | Commit]](list)
    for entry in entries:
        if isinstance(entry, Asked | Commit):
            attempts[entry.partition].append(entry)
    fetched = [entry for entry in entries if isinstance(entry, Fetched)]
    return [text for entry in fetched if (text := _wrong(entry, attempts[entry.partition]))]


def _wrong(fetched: Fetched, attempts: Sequence[Asked | Commit]) -> str:
    where = f"{fetched.partition[0]}-{fetched.partition[1]}"
    commits = [attempt for attempt in attempts if isinstance(attempt, Commit) and attempt.is_ok]
    acked = [commit.offset for commit in commits if commit.returned <= fetched.invoked]
    if fetched.offset < max(acked, default=-1):
        return f"group offset of {where} is {fetched.offset}, {max(acked)} had been acknowledged before"
    if fetched.offset >= 0 and fetched.offset not in {attempt.offset for attempt in attempts}:
        return f"group offset of {where} is {fetched.offset}, which nobody committed"
    return ""


def polled_values(entries: Iterable[Entry]) -> Counter[str]:
    rows = (entry for entry in entries if isinstance(entry, Row) and entry.f == "poll")
    ops = (op for row in rows for op in row.ops)
    return Counter(str(value) for op in ops if isinstance(op, Poll) for _, value in op.records)


def never_polled(promised: Set[str], entries: Iterable[Entry]) -> list[str]:
    missing = sorted(promised - polled_values(entries).keys())
    return _shown(f"{len(missing)} acknowledged records came to no member of the group", missing)


def not_exactly_once(promised: Mapping[str, int], read: Iterable[str], *, possible: Set[str]) -> list[str]:
    """`promised`: texts and how often each must stand there; `possible`: those that may. `read` has `text@attempt`."""
    seen = Counter(text_of(value) for value in read)
    missing = sorted(text for text in promised if not seen[text])
    wrong = sorted(text for text, times in seen.items() if times != promised.get(text, 1))
    unknown = sorted(seen.keys() - promised.keys() - possible)
    return [
        *_shown(f"{len(missing)} results of acknowledged records are missing", missing),
        *_shown(f"{len(wrong)} results stand there too often or not often enough", wrong),
        *_shown(f"{len(unknown)} results are of records that nobody sent", unknown),
    ]


def text_of(value: str) -> str:
    return value.rpartition("@")[0]


def transaction_counts(entries: Iterable[Entry]) -> Counter[str]:
    names = {"ok": "transactions committed", "fail": "transactions aborted", "invoke": "transactions begun"}
    rows = [entry for entry in entries if isinstance(entry, Row)]
    counts = Counter(names[row.type] for row in rows if row.f == "txn" and row.type in names)
    counts["assignments"] = sum(row.f == "assign" for row in rows)
    counts["transactional calls given up"] = sum(row.f == "gave-up" for row in rows)
    counts["transactional calls that hung"] = sum(row.f == "hung" for row in rows)
    counts["producer epochs given"] = sum(row.f == "init" and row.type == "ok" for row in rows)
    counts["zombies fenced"] = sum(row.f == "replaced" for row in rows)
    return counts


def commit_counts(entries: Iterable[Entry], whose: str) -> Counter[str]:
    commits = [entry.is_ok for entry in entries if isinstance(entry, Commit)]
    refused = len(commits) - sum(commits)
    return Counter({f"commits {whose} acknowledged": sum(commits), f"commits {whose} refused or unanswered": refused})


def _shown(text: str, values: Sequence[str]) -> list[str]:
    return [f"{text}: {', '.join(values[:SHOWN])}{' ...' if len(values) > SHOWN else ''}"] if values else []
