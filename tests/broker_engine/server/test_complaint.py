"""A reason is said once, and again when something else came between."""

from __future__ import annotations

from broker_engine.server.complaint import Complaint


def test_the_same_reason_is_news_once() -> None:
    complaint = Complaint()
    assert [complaint.is_news(reason) for reason in ("full", "full", "gone", "full")] == [True, False, True, True]


def test_what_went_well_in_between_makes_it_news_again() -> None:
    complaint = Complaint()
    assert complaint.is_news("full")
    complaint.settle()
    assert complaint.is_news("full")
