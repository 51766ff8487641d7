"""Entry points: each reads, calls transforms, writes."""
