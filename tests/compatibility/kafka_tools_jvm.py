"""Many of Kafka's own commands in one JVM (java/tools/ToolRunner.java), as an operator types them.

with ToolsJvm(bootstrap) as tools:
    tools.run("groups", "--list")                  # what it printed; fails where the command did
    tools.run("offsets", "--topic", "x", code=1)   # a command that must fail
"""

from __future__ import annotations

import json
import subprocess
from types import TracebackType
from typing import Self

from tests.broker_engine.log.kafka_tools import LIBS, need_kafka_tools
from tests.compatibility.drivers import compiled

_CLASSES = {
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
}
_FLAGS = ["-Xmx256m", "-XX:TieredStopAtLevel=1"]  # one compiler is enough for what lives for seconds
_TIMEOUT_S = 120


class ToolsJvm:
    def __init__(self, bootstrap: str) -> None:
        need_kafka_tools()
        self._bootstrap = bootstrap
        classpath = f"{LIBS}/*:{compiled('tools', LIBS)}"
        self._process = subprocess.Popen(
            ["java", *_FLAGS, "-cp", classpath, "ToolRunner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, tool: str, *options: str, code: int = 0, stdin: str = "") -> str:
        words = [_CLASSES[tool], "--bootstrap-server", self._bootstrap, *options]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"words": words, "stdin": stdin}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the JVM ended in kafka-{tool} {options}"
        answer = json.loads(line)
        assert answer["code"] == code, f"kafka-{tool} {' '.join(options)}: {answer['code']}\n{answer['output']}"
        return str(answer["output"])

    def run_alone(self, tool: str, *options: str) -> str:
        """In a JVM of its own: some tools finish their work in a shutdown hook of the real process."""
        words = [_CLASSES[tool], "--bootstrap-server", self._bootstrap, *options]
        command = ["java", *_FLAGS, "-cp", f"{LIBS}/*", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()


def rows(output: str) -> list[dict[str, str]]:
    """A tool's table: the words under each heading."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    heads = [index for index, words in enumerate(lines) if len(words) > 1 and words[0][:1].isupper()]
    if not heads:
        return []
    head = lines[heads[0]]
    return [dict(zip(head, words, strict=False)) for words in lines[heads[0] + 1 :]]
