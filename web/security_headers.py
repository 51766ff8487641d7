"""The Content-Security-Policy of every answer: scripts, styles and connections of our own origin only."""

from __future__ import annotations

from web.asgi_types import AsgiApp, Message, Receive, Scope, Send

SELF_ONLY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
# The browsable API page (Swagger UI) styles its parts inline; its scripts are files.
DOCS = SELF_ONLY + "; style-src 'self' 'unsafe-inline'"
DOCS_PATH = "/api/v1/docs"


class SecurityHeaders:
    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        policy = DOCS if scope["path"].rstrip("/") == DOCS_PATH else SELF_ONLY

        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(b"content-security-policy", policy.encode()), (b"x-content-type-options", b"nosniff")]
                kept = [pair for pair in message.get("headers", []) if pair[0].lower() not in dict(added)]
                message = {**message, "headers": [*kept, *added]}
            await send(message)

        await self._app(scope, receive, send_with_policy)
