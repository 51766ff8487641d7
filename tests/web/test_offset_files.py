"""Files of offsets go both ways between REST and kafka-consumer-groups: what one exports, the other resets to."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.compatibility.kafka_tools_jvm import ToolsJvm
from tests.web.stack import Stack
from tests.web.test_groups import send

pytestmark = pytest.mark.kafka_peer


class ResetTool:
    """kafka-consumer-groups --reset-offsets, signed in as the tenant."""

    def __init__(self, jvm: ToolsJvm, stack: Stack, folder: Path) -> None:
        self._jvm = jvm
        self._login = folder / "client.properties"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        self._login.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={module} required username="{stack.demo.key_id}" password="{stack.demo.secret}";\n'
        )

    def execute(self, *options: str) -> None:
        self._jvm.run("consumer-groups", *self._words(options), "--execute")

    def export(self, *options: str) -> str:
        """What a shell would put into the file."""
        return self._jvm.run_alone("consumer-groups", *self._words(options), "--export", "--dry-run")

    def _words(self, options: tuple[str, ...]) -> list[str]:
        return ["--command-config", str(self._login), "--reset-offsets", *options]


@pytest.fixture(scope="module")
def tool(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResetTool]:
    with ToolsJvm(stack.broker.address("clients")) as jvm:
        yield ResetTool(jvm, stack, tmp_path_factory.mktemp("login"))


@pytest.fixture
def topic(stack: Stack) -> str:
    """Ten records in each of two partitions."""
    name = stack.create_topic(stack.demo, f"files-{uuid.uuid4().hex[:8]}", partitions=2)
    send(stack, name)
    return name


@pytest.fixture
def group() -> str:
    """A name that has to be quoted in a file."""
    return f'north, "south"/{uuid.uuid4().hex[:8]}'


def reset(stack: Stack, group: str, csv: str) -> None:
    with stack.http(stack.demo) as client:
        answer = client.post(f"/groups/{quote(group, safe='')}:reset-offsets", json={"to": "file", "csv": csv})
        assert answer.status_code == 200, f"{answer.text}\n{csv}"


def exported(stack: Stack, group: str) -> str:
    with stack.http(stack.demo) as client:
        return client.get(f"/groups/{quote(group, safe='')}/offsets.csv").text


def test_kafkas_tool_takes_what_rest_exports(
    stack: Stack, tool: ResetTool, group: str, topic: str, tmp_path: Path
) -> None:
    reset(stack, group, f"{topic},0,4\n{topic},1,7\n")
    file = tmp_path / "offsets.csv"
    file.write_text(exported(stack, group))
    reset(stack, group, f"{topic},0,10\n{topic},1,0\n")
    tool.execute("--group", group, "--from-file", str(file))
    assert exported(stack, group) == f"{topic},0,4\n{topic},1,7\n"


def test_rest_takes_what_kafkas_tool_exports(stack: Stack, tool: ResetTool, group: str, topic: str) -> None:
    reset(stack, group, tool.export("--group", group, "--topic", topic, "--to-offset", "6"))
    assert exported(stack, group) == f"{topic},0,6\n{topic},1,6\n"


def test_of_an_export_of_several_groups_rest_takes_the_lines_of_one(
    stack: Stack, tool: ResetTool, group: str, topic: str
) -> None:
    other = f"{group}-other"
    for name, offset in ((group, 3), (other, 8)):
        reset(stack, name, f"{topic},0,{offset}\n{topic},1,{offset}\n")
    both = tool.export("--group", group, "--group", other, "--topic", topic, "--shift-by", "-1")
    reset(stack, group, both)
    assert exported(stack, group) == f"{topic},0,2\n{topic},1,2\n"
    assert exported(stack, other) == f"{topic},0,8\n{topic},1,8\n"
