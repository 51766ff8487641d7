"""Consumer groups and their offsets: pure state machines and Kafka's record formats. Start at README.md."""
