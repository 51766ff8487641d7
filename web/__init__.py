"""The outermost layer: ASGI entry, WebSocket consumers, the dashboard's pages."""
