"""ElectionState: the epoch, vote and leader that a node must not forget; `quorum-state` is Kafka's JSON with a CRC."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from uuid import UUID

NO_NODE = -1
_DATA_VERSION = 1
_NO_DIRECTORY = UUID(int=0)


class ElectionStateError(Exception):
    """The file is damaged. The node must not start: it could vote twice in one epoch."""


@dataclass(frozen=True, slots=True, order=True)
class VoterKey:
    """A voter is a node with its disk: an emptied or swapped directory is somebody else."""

    node_id: int
    directory_id: UUID


@dataclass(frozen=True, slots=True)
class ElectionState:
    epoch: int = 0
    leader_id: int = NO_NODE
    voted_for: VoterKey | None = None

    def __post_init__(self) -> None:
        assert self.epoch >= 0


def encode_election_state(state: ElectionState) -> bytes:
    voted = state.voted_for or VoterKey(NO_NODE, _NO_DIRECTORY)
    fields = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": voted.node_id,
        "votedDirectoryId": _id_text(voted.directory_id),
        "data_version": _DATA_VERSION,
    }
    return json.dumps({**fields, "crc": _crc(fields)}).encode("ascii")


def decode_election_state(data: bytes) -> ElectionState:
    try:
        fields = json.loads(data)
        crc = fields.pop("crc")
        if fields["data_version"] != _DATA_VERSION or crc != _crc(fields):
            raise ElectionStateError("quorum-state does not match its checksum or version")
        voted = VoterKey(int(fields["votedId"]), _id_from(fields["votedDirectoryId"]))
        leader_id, epoch = int(fields["leaderId"]), int(fields["leaderEpoch"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ElectionStateError(f"quorum-state cannot be read: {error}") from error
    return ElectionState(epoch, leader_id, None if voted.node_id == NO_NODE else voted)


def _crc(fields: dict[str, object]) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())


def _id_text(value: UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def _id_from(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))
