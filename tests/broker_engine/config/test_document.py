"""docs/configs.md is made from the rows that the broker checks by; this keeps it so."""

from __future__ import annotations

from pathlib import Path

from broker_engine.config.document import document

REPOSITORY = Path(__file__).resolve().parents[3]


def test_the_page_of_configs_is_what_the_rows_say() -> None:
    page = (REPOSITORY / "docs" / "configs.md").read_text()
    assert page == document(), "run: python -m broker_engine.config.document > docs/configs.md"
