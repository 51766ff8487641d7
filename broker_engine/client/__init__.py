"""The engine's own Kafka client: connection, metadata, producer, consumer, admin. See README.md."""
