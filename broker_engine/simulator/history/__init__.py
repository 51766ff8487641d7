"""The history checker: what clients were told, held against what a log may do. See README.md."""

from __future__ import annotations

from broker_engine.simulator.history.checker import check
from broker_engine.simulator.history.registers import Call, Cas, Read, Write, find_nonlinearizable
from broker_engine.simulator.history.report import Allowed, Anomaly, Kind, Report
from broker_engine.simulator.history.rows import EndOffset, Epoch, History, Poll, Row, Send

__all__ = [
    "Allowed",
    "Anomaly",
    "Call",
    "Cas",
    "EndOffset",
    "Epoch",
    "History",
    "Kind",
    "Poll",
    "Read",
    "Report",
    "Row",
    "Send",
    "Write",
    "check",
    "find_nonlinearizable",
]
