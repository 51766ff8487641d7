"""Bank transfers: a chain of transactions in which money must neither vanish nor appear, whoever is killed.

Transfers are read by a group of bookers; each books a batch of them in one transaction: an entry that takes and one
that gives, in two partitions of the ledger, and the group's offsets. An auditor reads the ledger by read_committed all
the while. Brokers and bookers get SIGKILL every few seconds. Then: the accounts' sum is what it was at the start
whenever no transfer is half read, and at the end; each transfer that was acknowledged is booked once; and the history
of all of them has no anomaly (a transaction that is lost, seen in part, or seen though it was aborted).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from broker_engine.simulator.history import check as check_history
from broker_engine.simulator.history.rows import Epoch, Partition, Row, Send
from tests.chaos import group_check
from tests.chaos.act import STATIC
from tests.chaos.bank_clients import Audit, Clerk
from tests.chaos.cluster import Cluster
from tests.chaos.crew import Crew
from tests.chaos.journal import Entry

ACCOUNTS, OPENING_BALANCE = 12, 1_000
PARTITIONS = 4
BOOKERS = 3
LEDGER, ORDERS, GROUP = "ledger", "transfers", "bookers"
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "8",
    "transaction.state.log.num.partitions": "8",
}


def book(_: Partition, __: int, transfer: str) -> list[tuple[Partition, str]]:
    """`number:source:target:amount` becomes two entries; an account's entries stand in one partition, in order."""
    number, source, target, amount = transfer.split(":")
    takes = ((LEDGER, int(source) % PARTITIONS), f"{number}:takes:{source}:-{amount}")
    gives = ((LEDGER, int(target) % PARTITIONS), f"{number}:gives:{target}:{amount}")
    return [takes, gives]


def new_transfer(number: int, random: Random) -> str:
    """Between accounts in different partitions."""
    source, step = random.randrange(ACCOUNTS), random.choice([1, 2, 3])
    return f"{number}:{source}:{(source + step) % ACCOUNTS}:{random.randint(1, 100)}"


@dataclass(slots=True)
class Books:
    """What the auditor has read so far. Pure."""

    balances: Counter[int] = field(default_factory=lambda: Counter(dict.fromkeys(range(ACCOUNTS), OPENING_BALANCE)))
    entries: list[str] = field(default_factory=list)
    half_read: set[str] = field(default_factory=set)
    boundaries: int = 0
    """How often no transfer was half read, and the sum was looked at."""
    problems: list[str] = field(default_factory=list)

    def add(self, entry: str) -> None:
        number, _, account, amount = group_check.text_of(entry).split(":")
        self.entries.append(entry)
        self.balances[int(account)] += int(amount)
        self.half_read ^= {number}
        if not self.half_read:
            self.boundaries += 1
            self.look()

    def look(self) -> None:
        total, expected = sum(self.balances.values()), ACCOUNTS * OPENING_BALANCE
        if total != expected:
            self.problems.append(f"after {len(self.entries)} entries the accounts have {total} instead of {expected}")


@dataclass(slots=True)
class Result:
    books: Books
    orders: Clerk
    kills: Counter[str]
    problems: list[str]
    figures: Counter[str]

    def line(self) -> str:
        return (
            f"-- bank: kills {dict(self.kills)}, transfers sent {len(self.orders.sent)}, "
            f"acked {len(self.orders.acked)}, entries read {len(self.books.entries)}, "
            f"sum looked at {self.books.boundaries} times, {dict(self.figures)}, problems {len(self.problems)}"
        )


def play(folder: Path, seconds: float, seed: int, say: Callable[[str], None]) -> Result:
    random, books = Random(seed), Books()
    with Cluster(folder, 3, SETTINGS) as cluster:
        sources = cluster.create_topic(ORDERS, PARTITIONS)
        accounts = cluster.create_topic(LEDGER, PARTITIONS)
        crew = _hire(cluster, folder)
        clerk = Clerk(cluster.bootstrap, sources, lambda number: new_transfer(number, random))
        with crew, Audit(cluster.bootstrap, accounts, books.add) as audit:
            with clerk:
                kills = _kill_for(seconds, cluster, crew, Random(seed + 1), say)
            problems = crew.finish({GROUP: sources})
            problems += audit.finish()
        entries = crew.entries(GROUP)
    audit.history.extend(ledger_rows(entries))
    problems += check(books, clerk.sent, clerk.acked) + [str(one) for one in check_history(audit.history).violations]
    return Result(books, clerk, kills, problems, group_check.transaction_counts(entries))


def _hire(cluster: Cluster, folder: Path) -> Crew:
    """All but the last are static members: a new process takes a killed one's place without a rebalance."""
    crew = Crew(cluster.bootstrap, folder)
    for number in range(BOOKERS):
        static = {**STATIC, "group.instance.id": f"booker-{number}"} if number < BOOKERS - 1 else {}
        crew.add_transformer(f"booker-{number}", GROUP, [ORDERS], book, **static)
    return crew


def _kill_for(seconds: float, cluster: Cluster, crew: Crew, random: Random, say: Callable[[str], None]) -> Counter[str]:
    """How long nothing happens between two kills is drawn, not a condition to wait for."""
    deadline, kills = time.monotonic() + seconds, Counter[str]()
    while time.monotonic() < deadline or len(kills) < len(("broker", "booker")):
        time.sleep(random.uniform(0.5, 2.5))
        if random.random() < 0.5:
            victim = random.choice(list(cluster.nodes))
            cluster.kill(victim)
            cluster.launch([victim])
            cluster.wait_until_whole([LEDGER, ORDERS])
            kills["broker"] += 1
            say(f"   SIGKILL of broker {victim}")
        else:
            kills["booker"] += 1
            say(f"   SIGKILL of {crew.kill_one(random)}")
    return kills


def ledger_rows(entries: Iterable[Entry]) -> Iterator[Row]:
    """What bookers wrote. What they read is left out: one that was killed may have read more than it noted."""
    for entry in entries:
        if isinstance(entry, Row):
            yield replace(entry, ops=tuple(op for op in entry.ops if isinstance(op, Send | Epoch)))


def check(books: Books, sent: Iterable[str], acked: Iterable[str]) -> list[str]:
    """At the end, of all that was read."""
    books.look()
    if books.half_read:
        books.problems.append(f"{len(books.half_read)} transfers are booked by half")
    promised = dict.fromkeys((text for transfer in acked for _, text in book((ORDERS, 0), 0, transfer)), 1)
    possible = {text for transfer in sent for _, text in book((ORDERS, 0), 0, transfer)}
    return [*books.problems, *group_check.not_exactly_once(promised, books.entries, possible=possible)]
