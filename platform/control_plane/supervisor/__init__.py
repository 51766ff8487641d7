"""One command that starts, watches and stops everything a single machine needs."""
