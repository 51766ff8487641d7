"""One flush of one log: made on the loop, run in a thread, reported back on the loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_engine.log.file_seam import FileHandle, Files


@dataclass(slots=True)
class FlushJob:
    """Covers everything below `end_offset`. `run` never raises: `PartitionLog.on_flushed` tells how it went."""

    files: Files
    end_offset: int
    handles: list[FileHandle]
    """Pinned when the job was made; `release` unpins them."""
    small_files: dict[str, bytes] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)
    error: OSError | None = None

    def run(self) -> None:
        """Blocks for the disk. Touches nothing of the log but its own captured handles."""
        try:
            for handle in self.handles:
                handle.sync()
            for path, data in self.small_files.items():
                self.files.write_atomic(path, data, is_durable=True)
            for directory in self.directories:
                self.files.sync_dir(directory)
        except OSError as error:
            self.error = error

    def release(self) -> None:
        for handle in self.handles:
            handle.unpin()
        self.handles = []
