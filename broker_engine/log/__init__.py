"""The partition log: Kafka's directory and file formats, written to the page cache, flushed by the caller's threads."""
