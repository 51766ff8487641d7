"""What drives a broker. Each load runs in a process of its own, reads the broker's CPU around its timed part, and is
the same for both brokers."""
