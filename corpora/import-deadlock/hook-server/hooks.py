"""The webhook endpoint: an ASGI application and the server that runs it."""
import threading

from background import BackgroundServer

RECEIVED = []


async def app(scope, receive, send):
    message = await receive()
    RECEIVED.append((scope["path"], message.get("body", b"")))
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


SERVER = BackgroundServer("hooks:app", port=0)  # CULPRIT
threading.Thread(target=SERVER.run, name="webhooks", daemon=True).start()  # CULPRIT
SERVER.listening.wait()  # CULPRIT
