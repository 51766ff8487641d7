"""The engine's world, owned by a seed: a disk that loses power, a recorder of file operations, crash images."""
