"""Query strings of the stateless fetch."""

from __future__ import annotations

import pytest

from api.gateway.fetch_query import FetchQuery, QueryError, parse_fetch_query


def test_nothing_given_reads_from_the_start() -> None:
    assert parse_fetch_query({}) == FetchQuery(edge="earliest")


def test_all_parameters() -> None:
    query = {
        "tail": "5",
        "max_records": "2",
        "max_bytes": "99",
        "wait_ms": "30000",
        "key_format": "base64",
        "value_format": "json",
    }
    assert parse_fetch_query(query) == FetchQuery(
        tail=5, record_count_max=2, bytes_max=99, wait_ms=30_000, key_format="base64", value_format="json"
    )


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"offset": "-1"}, "offset"),
        ({"offset": "1_0"}, "offset"),
        ({"offset": "\u0661"}, "offset"),
        ({"offset": "9223372036854775808"}, "offset"),
        ({"offset": "1", "tail": "3"}, "tail"),
        ({"wait_ms": "30001"}, "wait_ms"),
        ({"max_records": "0"}, "max_records"),
        ({"max_records": "1001"}, "max_records"),
        ({"value_format": "avro"}, "value_format"),
        ({"partition": "1"}, "partition"),
    ],
)
def test_a_refusal_names_the_parameter(query: dict[str, str], field: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_fetch_query(query)
    assert caught.value.field == field
