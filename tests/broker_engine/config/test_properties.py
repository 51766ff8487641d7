from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_engine.config import ConfigError, parse_properties
from broker_engine.config.properties import encode_properties


def test_a_server_properties_file() -> None:
    text = """
    # the broker
    node.id=1
    ! also a comment
    listeners = demo=127.0.0.1:9092,\\
                internal=127.0.0.1:9094
    broker.rack: r\\u00e4ck
    log.dirs /var/lib/highwater
    empty=
    path=C:\\\\data\r
    """
    assert parse_properties(text) == {
        "node.id": "1",
        "listeners": "demo=127.0.0.1:9092,internal=127.0.0.1:9094",
        "broker.rack": "räck",
        "log.dirs": "/var/lib/highwater",
        "empty": "",
        "path": "C:\\data",
    }


def test_a_key_that_stands_twice_is_an_error() -> None:
    with pytest.raises(ConfigError, match="twice"):
        parse_properties("a=1\na=2")


def test_a_comment_does_not_end_a_continued_line() -> None:
    assert parse_properties("a=1,\\\n# 2\nb=3") == {"a": "1,# 2", "b": "3"}


@given(st.text(max_size=60))
def test_no_text_crashes_the_parser(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_properties(text), dict)


PRINTABLE = st.text(
    alphabet=st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="\x7f\x85\xa0\xad"), max_size=12
)


@given(st.dictionaries(PRINTABLE.filter(bool), PRINTABLE, max_size=4))
def test_what_we_write_reads_back(values: dict[str, str]) -> None:
    assert parse_properties(encode_properties(values)) == values
