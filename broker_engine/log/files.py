"""The public face of the file seam: see file_seam for the interfaces."""

from __future__ import annotations

from broker_engine.log.disk_files import OPEN_FILES_MAX_DEFAULT, DiskFiles
from broker_engine.log.file_seam import FileHandle, FileRange, Files, Part
from broker_engine.log.memory_files import MemoryFiles

__all__ = ["OPEN_FILES_MAX_DEFAULT", "DiskFiles", "FileHandle", "FileRange", "Files", "MemoryFiles", "Part"]
