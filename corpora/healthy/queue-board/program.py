"""The board of a waiting room: a tornado service at rest, whose clock goes on once a second."""
import tornado.ioloop
import tornado.locks
import tornado.web


class Board:
    def __init__(self):
        self.number = 1
        self.seconds = 0
        self.changed = tornado.locks.Condition()

    def tick(self):
        self.seconds += 1

    def call_next(self):
        self.number += 1
        self.changed.notify_all()


class Show(tornado.web.RequestHandler):
    def initialize(self, board):
        self.board = board

    async def get(self):
        await self.board.changed.wait()
        self.write({"number": self.board.number})

    def post(self):
        self.board.call_next()


def main():
    board = Board()
    application = tornado.web.Application([("/board", Show, {"board": board})])
    application.listen(0, "127.0.0.1")
    tornado.ioloop.PeriodicCallback(board.tick, 1000).start()
    loop = tornado.ioloop.IOLoop.current()
    loop.add_callback(lambda: print("ready", flush=True))
    loop.start()


if __name__ == "__main__":
    main()
