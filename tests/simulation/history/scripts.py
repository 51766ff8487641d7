"""Histories as scripts that one can read aloud: one line a row, time = line number.

    p1 send 1            invoked          p1 ok 1@0     acknowledged at offset 0     p1 fail 1    p1 info 1
    c1 poll 0:1 1:2      read value 1 at offset 0, 2 at 1        c1 assign          c1 end? / c1 end 5
    t1 commit send 3@2 poll 0:1 send 4@3       t1 abort ...      t1 unsure ...      a transaction's completion
    t1 begin 3 b/4       its invocation        t1 commit!        it asks for it     c1 peek 0:1    read uncommitted
    t1 init? / t1 init 5 got epoch 5           t1 commit epoch 5 send 3@2           committed in epoch 5
A value may carry its partition: `b/7` is value 7 in partition b; without it, partition a.
"""

from __future__ import annotations

from broker_engine.simulator.history import Allowed, EndOffset, Epoch, History, Kind, Poll, Report, Send, check
from broker_engine.simulator.history.rows import Op, Partition, RowType

TRANSACTION_ENDS: dict[str, RowType] = {"commit": "ok", "abort": "fail", "unsure": "info"}


def history_of(script: str) -> History:
    history = History()
    for time, line in enumerate(filter(None, map(str.strip, script.splitlines()))):
        _add(history, time, *line.split())
    return history


def found_in(script: str, allowed: Allowed | None = None) -> list[Kind]:
    return sorted(report_of(script, allowed).kinds())


def report_of(script: str, allowed: Allowed | None = None) -> Report:
    return check(history_of(script), allowed)


def _add(history: History, time: float, process: str, verb: str, *words: str) -> None:
    match verb:
        case "send":
            history.invoke(process, "send", [_send(word) for word in words], time=time)
        case "ok" | "fail" | "info":
            getattr(history, verb)(process, "send", [_send(word) for word in words], time=time)
        case "poll":
            history.ok(process, "poll", _polls(words), time=time)
        case "peek":
            history.ok(process, "poll_uncommitted", _polls(words), time=time)
        case "begin":
            history.invoke(process, "txn", [_send(word) for word in words], time=time)
        case "commit!":
            history.invoke(process, "commit", time=time)
        case "init?":
            history.invoke(process, "init", time=time)
        case "init":
            history.ok(process, "init", [Epoch("id", 7, int(words[0]))], time=time)
        case "assign":
            history.ok(process, "assign", time=time)
        case "end?":
            history.invoke(process, "list_offsets", [EndOffset(("a", 0))], time=time)
        case "end":
            history.ok(process, "list_offsets", [EndOffset(("a", 0), int(words[0]))], time=time)
        case "commit" | "abort" | "unsure":
            getattr(history, TRANSACTION_ENDS[verb])(process, "txn", _transaction(words), time=time)
        case _:
            raise ValueError(verb)


def _send(word: str) -> Send:
    partition, rest = _placed(word)
    value, _, offset = rest.partition("@")
    return Send(partition, int(value), int(offset) if offset else None)


def _polls(words: tuple[str, ...] | list[str]) -> list[Poll]:
    """Neighbours of one partition are one poll."""
    polls: list[Poll] = []
    for word in words:
        partition, rest = _placed(word)
        offset, _, value = rest.partition(":")
        record = (int(offset), int(value))
        if polls and polls[-1].partition == partition:
            polls[-1] = Poll(partition, (*polls[-1].records, record))
        else:
            polls.append(Poll(partition, (record,)))
    return polls


def _transaction(words: tuple[str, ...]) -> list[Op]:
    ops: list[Op] = []
    verb = ""
    for word in words:
        if word in ("send", "poll", "epoch"):
            verb = word
        elif verb == "epoch":
            ops.append(Epoch("id", 7, int(word)))
        else:
            ops.append(_send(word) if verb == "send" else _polls([word])[0])
    return ops


def _placed(word: str) -> tuple[Partition, str]:
    name, slash, rest = word.partition("/")
    return ((name, 0), rest) if slash else (("a", 0), word)
