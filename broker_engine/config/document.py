"""`python -m broker_engine.config.document`: every config as Markdown, from the same rows that the broker checks by."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from broker_engine.config.broker import BROKER_CONFIGS
from broker_engine.config.group import GROUP_CONFIGS
from broker_engine.config.knobs import ConfigValue, Knob
from broker_engine.config.topic import TOPIC_CONFIGS

HEAD = """# Topic, group and broker configs

Made by `python -m broker_engine.config.document`: change the rows in `broker_engine/config/`, not this page.
Names and defaults are Apache Kafka's unless a sentence says otherwise. A name that is not here is refused, with the
nearest one that is.
"""


def document() -> str:
    topics = _table("Topic configs", TOPIC_CONFIGS.values(), with_broker_names=True)
    groups = _table("Group configs", GROUP_CONFIGS.values(), with_broker_names=False)
    brokers = _table("Broker configs", BROKER_CONFIGS.values(), with_broker_names=False)
    return f"{HEAD}\n{topics}\n{groups}\n{brokers}"


def _table(title: str, knobs: Iterable[Knob], *, with_broker_names: bool) -> str:
    last = "broker-wide name" if with_broker_names else "without a restart"
    lines = [f"## {title}", "", f"| name | type | default | what it does | {last} |", "|---|---|---|---|---|"]
    for knob in sorted(knobs, key=lambda knob: knob.name):
        names = ", ".join(f"`{default.name}`" for default in knob.broker_defaults)
        end = names if with_broker_names else ("yes" if knob.dynamic else "no")
        kind = knob.type.name.lower()
        lines.append(f"| `{knob.name}` | {kind} | {_shown(knob.default)} | {_cell(knob.doc)} | {end} |")
    return "\n".join(lines) + "\n"


def _shown(value: ConfigValue) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value) or "empty"
    return str(value) if value != "" else "empty"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(document())
