"""Commands on the metadata, when the controller that decided them does not lead any more."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.metadata.decision import Decision
from broker_engine.metadata.image import EMPTY_IMAGE, MetadataImage
from broker_engine.metadata.records import Record, TenantRecord
from broker_engine.quorum.ready import Entry
from broker_engine.server.metadata_commands import Commands


class Log:
    """As much of a driver as commands use. What is proposed is written, and committed when somebody says so."""

    def __init__(self) -> None:
        self.image = EMPTY_IMAGE
        self.is_leader = True
        self.epoch = 1
        self.applied_offset = 0
        self.end_offset = 0

    async def propose(self, values: tuple[bytes, ...]) -> Entry:
        entry = Entry(self.epoch, self.end_offset, values)
        self.end_offset = entry.end_offset
        return entry


def making(*tenants: str) -> Any:
    def command(image: MetadataImage) -> Decision[bool]:
        """True for those that are there already."""
        records: list[Record] = [TenantRecord(tenant=each) for each in tenants if each not in image.tenants]
        return Decision(tuple(records), tuple(each in image.tenants for each in tenants))

    return command


async def test_an_answer_by_what_was_never_committed_is_not_given() -> None:
    """The second command wrote nothing, because the first one had: and that is gone with the leadership."""
    log = Log()
    commands = Commands(cast(Any, log))
    running = asyncio.create_task(commands.run())
    asked = [asyncio.create_task(commands.commit(making("acme"))) for _ in range(2)]
    while log.end_offset == 0:  # noqa: ASYNC110 - nobody signals it
        await asyncio.sleep(0)
    log.is_leader = False
    commands.fail_undecided(decided_offset=0)
    commands.settle(applied_offset=0)
    for each in asked:
        with pytest.raises(BrokerError) as raised:
            await each
        assert raised.value.code is ErrorCode.NOT_CONTROLLER
    running.cancel()
