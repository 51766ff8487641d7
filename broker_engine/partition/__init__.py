"""The pure partition core: what a leader decides about a batch, and how far its log is committed."""
