"""Transactions, pure: what a coordinator decides, what it stores, and what it knows of one partition's ids."""
