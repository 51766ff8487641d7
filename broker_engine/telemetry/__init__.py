"""What a broker knows of itself, as a stream: one partition of `__telemetry` per broker (contracts.md section 9)."""
