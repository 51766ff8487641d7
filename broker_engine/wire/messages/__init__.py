"""One module per API; the registry holds them all."""
