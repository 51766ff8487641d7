"""The network seam: byte streams that the engine sees, and the sockets behind them."""
