"""Record batch v2: the bytes inside Produce, Fetch and segment files. Pure: bytes in, values or BrokerError out."""
