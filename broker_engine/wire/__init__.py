"""The Kafka protocol as bytes and typed messages: schema language, compiler, messages, framing. No I/O."""
