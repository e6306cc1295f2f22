"""A line server on asyncio under as much load as one client process makes."""
import asyncio
import json
import socket
import subprocess
import sys

CLIENT = """
import socket, sys, time
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
stream = line.makefile("rwb")
until = time.monotonic() + 20
while time.monotonic() < until:
    stream.write(b'{"add": [1, 2, 3]}\\n')
    stream.flush()
    stream.readline()
"""


class Calculator:
    async def serve(self, reader, writer):
        while True:
            line = await reader.readline()
            if not line:
                break
            request = json.loads(line)
            writer.write(json.dumps({"sum": sum(request["add"])}).encode() + b"\n")
            await writer.drain()
        writer.close()


async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    server = await asyncio.start_server(Calculator().serve, sock=listener)
    port = str(listener.getsockname()[1])
    clients = [subprocess.Popen([sys.executable, "-c", CLIENT, port]) for _ in range(3)]
    print("ready", flush=True)
    try:
        async with server:
            await server.serve_forever()
    finally:
        for client in clients:
            client.kill()


if __name__ == "__main__":
    asyncio.run(main())
