"""Groups of the consumer protocol (KIP-848): the broker assigns, members report, partitions move one by one."""
