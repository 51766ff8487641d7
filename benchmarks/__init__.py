"""Measured, not asserted: figures of this machine, never a test."""
