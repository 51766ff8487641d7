"""The async shell of one broker: connections, dispatch, the drivers of the pure cores, start and stop."""
