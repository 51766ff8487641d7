"""Highwater's broker engine: the Kafka protocol, a log in Kafka's file format, tenants inside."""
