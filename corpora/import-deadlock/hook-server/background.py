"""A uvicorn server for a thread."""
import threading

import uvicorn


class BackgroundServer(uvicorn.Server):
    def __init__(self, application, port):
        config = uvicorn.Config(application, host="127.0.0.1", port=port, lifespan="off", log_level="warning")
        super().__init__(config)
        self.listening = threading.Event()

    def install_signal_handlers(self):
        pass

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self.listening.set()
