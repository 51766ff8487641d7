"""Applications in a simulated cluster: one that ends by an exception is a finding, and leaves nothing that goes on."""

from __future__ import annotations

from broker_engine.client import GroupMember
from broker_engine.simulator.bank import GROUP
from broker_engine.simulator.lives import Life
from broker_engine.simulator.run import Run
from broker_engine.simulator.swarm import draw

SEED_WITH_A_BANK = 20004686


def test_an_application_that_ends_by_an_exception_is_told_of_and_is_no_member_any_more() -> None:
    run = Run(draw(SEED_WITH_A_BANK), [])
    bank = run.coordinated.bank
    assert bank is not None
    (place,) = bank.places
    work = place._work

    async def work_after_a_failure(life: Life) -> None:
        if life.name.endswith(".0"):
            client = await run.clients.connect(life.process, life.host)
            member = GroupMember(client, GROUP, ["transfers"], session_timeout_ms=1_000, heartbeat_interval_ms=250)
            member.start()
            await member.wait_assigned()
            raise LookupError("as a program does that has a mistake")
        await work(life)

    place._work = work_after_a_failure
    found = run.go().violations
    assert [violation.rule for violation in found] == ["no unexpected error"]  # not that the bank stands still
    assert "LookupError" in found[0].text
