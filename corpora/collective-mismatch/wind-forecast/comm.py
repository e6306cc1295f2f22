"""A communicator over stream sockets: rank 0 is the root of every operation. Messages carry the operation's name."""
import collections
import pickle
import socket
import struct

HEAD = struct.Struct("!I")


class Link:
    """One connection; keeps messages of other operations until they are asked for."""

    def __init__(self, sock):
        self.sock = sock
        self.early = collections.defaultdict(collections.deque)

    def send(self, tag, value):
        body = pickle.dumps((tag, value))
        self.sock.sendall(HEAD.pack(len(body)) + body)

    def receive(self, tag):
        while not self.early[tag]:
            size = HEAD.unpack(self._exactly(HEAD.size))[0]
            other, value = pickle.loads(self._exactly(size))
            self.early[other].append(value)
        return self.early[tag].popleft()

    def _exactly(self, size):
        parts = []
        while size:
            part = self.sock.recv(size)
            if not part:
                raise EOFError("the other rank has gone")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class Communicator:
    def __init__(self, rank, links):
        self.rank = rank
        self.links = links

    def all_reduce(self, value):
        if self.rank:
            self.links[0].send("all_reduce", value)
            return self.links[0].receive("all_reduce")
        total = value + sum(link.receive("all_reduce") for link in self.links)
        for link in self.links:
            link.send("all_reduce", total)
        return total

    def broadcast(self, value=None):
        if self.rank:
            return self.links[0].receive("broadcast")
        for link in self.links:
            link.send("broadcast", value)
        return value

    def gather(self, value):
        if self.rank:
            self.links[0].send("gather", value)
            return None
        return [value] + [link.receive("gather") for link in self.links]

    def barrier(self):
        self.gather(None)
        self.broadcast(None)


def star(size):
    """The ends of size - 1 connections: the root's, and one for each of the others."""
    pairs = [socket.socketpair() for _ in range(size - 1)]
    return [near for near, _ in pairs], [far for _, far in pairs]
