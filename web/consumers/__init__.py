"""WebSocket: a pure protocol, and a thin consumer that carries out what it says."""
