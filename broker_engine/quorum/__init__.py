"""The metadata quorum: a pure KRaft core. Start at README.md."""
