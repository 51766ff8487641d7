"""A broker of a few lines that answers as its script says: for faults that a real one does not show on demand.

It speaks through the network seam and the wire codec, knows one topic, `orders`, keeps what was produced, has no log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from uuid import UUID

from broker_engine.client.frames import FrameReader
from broker_engine.errors import ErrorCode
from broker_engine.net.sockets import SocketListener
from broker_engine.net.stream import Stream
from broker_engine.records.decode import decode_records
from broker_engine.records.header import parse_header
from broker_engine.wire import registry
from broker_engine.wire.framing import encode_response, frame, parse_request_header
from broker_engine.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from broker_engine.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker_engine.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker_engine.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from broker_engine.wire.schema import Message

TOPIC = "orders"
TOPIC_ID = UUID(int=77)
SILENCE = "silence"
HANG_UP = "hang up"
Step = ErrorCode | str


@dataclass(frozen=True)
class Produced:
    partition: int
    producer_id: int
    epoch: int
    sequence: int
    values: list[bytes | None]
    answer: Step


class ScriptedBroker:
    def __init__(self, *, partitions: int = 1, api_versions_max: int = 4) -> None:
        self.produce_script: deque[Step] = deque()
        """How to meet the next produce requests; then they succeed."""
        self.produce_default: Step = ErrorCode.NONE
        self.metadata_script: deque[ErrorCode] = deque()
        """The topic's error in the next metadata answers; then it is there."""
        self.produced: list[Produced] = []
        self.asked: list[tuple[str, int]] = []
        self._partitions = partitions
        self._api_versions_max = api_versions_max
        self._listener = SocketListener("127.0.0.1", 0)
        self._streams: list[Stream] = []
        self._accepting: asyncio.Task[None] | None = None
        self._next_offset = 0
        self._next_producer_id = 1000

    @property
    def address(self) -> str:
        host, port = self._listener.address
        return f"{host}:{port}"

    async def __aenter__(self) -> Self:
        self._accepting = asyncio.create_task(self._accept())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._accepting is not None
        self._accepting.cancel()
        await asyncio.gather(self._accepting, return_exceptions=True)
        self._listener.close()
        for stream in self._streams:
            stream.abort()

    async def _accept(self) -> None:
        while True:
            stream = await self._listener.accept()
            self._streams.append(stream)
            stream.start(self._reader(stream), lambda error: None)

    def _reader(self, stream: Stream) -> Callable[[memoryview], None]:
        frames = FrameReader(1 << 24)

        def on_bytes(data: memoryview) -> None:
            for request in frames.feed(data):
                self._serve(stream, request)

        return on_bytes

    def _serve(self, stream: Stream, request: memoryview) -> None:
        header = parse_request_header(request)
        spec = registry.api(header.api_key)
        self.asked.append((spec.name, header.api_version))
        if header.api_key == 18:
            answer, version = self._versions(header.api_version)
        else:
            message = spec.request.decode(header.body, header.api_version)
            made, version = self._answer(message), header.api_version
            if made is SILENCE:
                return
            if made is HANG_UP:
                stream.abort()
                return
            assert isinstance(made, Message)
            answer = made
        stream.send(frame(encode_response(header.correlation_id, answer, version)))

    def _versions(self, version: int) -> tuple[Message, int]:
        if version > self._api_versions_max:
            entry = ApiVersion(api_key=18, min_version=0, max_version=self._api_versions_max)
            return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[entry]), 0
        keys = [
            ApiVersion(api_key=spec.key, min_version=spec.min_version, max_version=spec.max_version)
            for spec in registry.all_apis()
        ]
        return ApiVersionsResponse(api_keys=keys), version

    def _answer(self, message: Message) -> Message | str:
        if isinstance(message, MetadataRequest):
            return self._metadata()
        if isinstance(message, InitProducerIdRequest):
            self._next_producer_id += 1
            return InitProducerIdResponse(producer_id=self._next_producer_id, producer_epoch=0)
        assert isinstance(message, ProduceRequest), f"nobody wrote an answer to {type(message).__name__}"
        return self._produce(message)

    def _metadata(self) -> MetadataResponse:
        host, port = self._listener.address
        parts = [
            MetadataResponsePartition(
                partition_index=index, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1]
            )
            for index in range(self._partitions)
        ]
        code = self.metadata_script.popleft() if self.metadata_script else ErrorCode.NONE
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=host, port=port)],
            cluster_id="scripted",
            controller_id=1,
            topics=[MetadataResponseTopic(error_code=code, name=TOPIC, topic_id=TOPIC_ID, partitions=parts)],
        )

    def _produce(self, request: ProduceRequest) -> Message | str:
        step = self.produce_script.popleft() if self.produce_script else self.produce_default
        answers = []
        for part in request.topic_data[0].partition_data:
            assert isinstance(part.records, bytes | memoryview)
            self._keep(part.index, part.records, step)
            code = step if isinstance(step, ErrorCode) else ErrorCode.NONE
            answers.append(PartitionProduceResponse(index=part.index, error_code=code, base_offset=self._next_offset))
            self._next_offset += len(self.produced[-1].values)
        if step is SILENCE or step is HANG_UP:
            return str(step)
        return ProduceResponse(
            responses=[TopicProduceResponse(name=TOPIC, topic_id=TOPIC_ID, partition_responses=answers)]
        )

    def _keep(self, partition: int, batch: bytes | memoryview, step: Step) -> None:
        header = parse_header(batch)
        values = [record.value for record in decode_records(batch, max_bytes=1 << 24)]
        self.produced.append(
            Produced(partition, header.producer_id, header.producer_epoch, header.base_sequence, values, step)
        )
