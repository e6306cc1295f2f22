"""A chat service, and the test that many members can join a room at once."""
import os
import sys
import unittest
from contextlib import ExitStack

from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.testclient import TestClient


class Room:
    def __init__(self):
        self.members = []

    async def join(self, socket):
        await socket.accept()
        self.members.append(socket)
        await socket.send_json({"members": len(self.members)})

    def leave(self, socket):
        self.members.remove(socket)


def build_app():
    app = FastAPI()
    room = Room()

    @app.websocket("/room")
    async def talk(socket: WebSocket):
        await room.join(socket)
        try:
            while True:
                text = await socket.receive_text()
                await socket.send_text("you said " + text)
        except WebSocketDisconnect:
            room.leave(socket)

    return app


class RoomTest(unittest.TestCase):
    members = int(os.environ.get("MEMBERS", "150"))

    def test_all_members_hear_an_answer(self):
        client = TestClient(build_app())
        print("ready", flush=True)
        with ExitStack() as stack:
            sockets = []
            for number in range(1, self.members + 1):
                socket = stack.enter_context(client.websocket_connect("/room"))
                self.assertEqual(socket.receive_json(), {"members": number})
                sockets.append(socket)
            for socket in sockets:
                socket.send_text("hello")
            for socket in sockets:
                self.assertEqual(socket.receive_text(), "you said hello")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        RoomTest.members = int(sys.argv.pop(1))
    unittest.main()
