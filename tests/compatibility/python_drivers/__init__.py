"""One driver per Python client, each a program: bootstrap, prefix of topics, features. Features: matrix.py."""
