"""The data directory as a whole: one broker at a time, the broker and cluster that it belongs to, how it was left.

`meta.properties` and the clean-shutdown marker are Kafka's files by name and form.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from broker_engine.config import ConfigError, parse_properties
from broker_engine.config.properties import encode_properties
from broker_engine.server.store import DiskStore, Store

_META = "meta.properties"
CLEAN_MARKER = ".kafka_cleanshutdown"
_META_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Meta:
    cluster_id: str
    node_id: int
    directory_id: UUID
    is_founder: bool = False
    """The cluster began here, with this node as its only voter."""


class DataDir:
    def __init__(self, path: Path, open_store: Callable[[Path], Store] = DiskStore) -> None:
        self.path = path
        self.store = open_store(path)
        self.files = self.store.files

    def lock(self) -> None:
        """Held until the process ends, however it ends."""
        try:
            self.store.lock()
        except BlockingIOError:
            raise ConfigError(f"another broker runs on {self.path}: stop it, or choose another --data-dir") from None

    def unlock(self) -> None:
        self.store.unlock()

    @property
    def is_new(self) -> bool:
        """No broker ever started here."""
        return not self.files.exists(_META)

    def load_meta(self, node_id: int) -> Meta | None:
        """Who this directory belongs to; None for a new one. ConfigError where it is another node's."""
        if self.is_new:
            return None
        meta = _parse_meta(self.files.read_small(_META), self.path / _META)
        if meta.node_id != node_id:
            raise ConfigError(f"{self.path} belongs to node {meta.node_id}, not to node {node_id}: check --node-id")
        return meta

    def write_meta(self, meta: Meta) -> None:
        """Once in the life of a directory."""
        assert self.is_new, "a directory stays with its cluster"
        self.files.write_atomic(_META, _format_meta(meta), is_durable=True)

    def take_clean_marker(self) -> int | None:
        """The broker epoch of a clean stop, or None after a crash. It is gone before anything else happens."""
        if not self.files.exists(CLEAN_MARKER):
            return None
        try:
            broker_epoch = int(json.loads(self.files.read_small(CLEAN_MARKER))["brokerEpoch"])
        except (ValueError, KeyError, TypeError):
            broker_epoch = None
        self.files.unlink(CLEAN_MARKER)
        self.files.sync_dir("")
        return broker_epoch

    def write_clean_marker(self, broker_epoch: int) -> None:
        """The last thing of a clean stop: every log is on disk."""
        data = json.dumps({"version": 0, "brokerEpoch": broker_epoch}).encode()
        self.files.write_atomic(CLEAN_MARKER, data, is_durable=True)


def id_text(value: UUID) -> str:
    """Kafka's text form of an id: 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def parse_id(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _format_meta(meta: Meta) -> bytes:
    values = {
        "version": _META_VERSION,
        "cluster.id": meta.cluster_id,
        "node.id": str(meta.node_id),
        "directory.id": id_text(meta.directory_id),
    }
    if meta.is_founder:
        values["founder"] = "true"
    return encode_properties(values).encode()


def _parse_meta(data: bytes, path: Path) -> Meta:
    values = parse_properties(data.decode())
    try:
        is_founder = values.get("founder") == "true"
        return Meta(values["cluster.id"], int(values["node.id"]), parse_id(values["directory.id"]), is_founder)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{path} is damaged ({error}): restore it from a copy") from None
