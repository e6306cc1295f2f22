"""The tests of a postcode service: every postcode of the register is asked for once."""
import sys
import unittest

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, loop_context

REGISTER = {}


def load_register(size):
    for number in range(size):
        code = "%06d" % (number * 7)
        REGISTER[code] = {"code": code, "places": [["place-%d" % number, number % 90], {"district": number % 401}]}


async def postcode(request):
    entry = REGISTER.get(request.match_info["code"])
    if entry is None:
        raise web.HTTPNotFound()
    return web.json_response(entry)


def build_app():
    app = web.Application()
    app.router.add_get("/postcodes/{code}", postcode)
    return app


class PostcodeTest(unittest.TestCase):
    def __init__(self, code):
        super().__init__("test_postcode")
        self.code = code

    async def fetch(self):
        async with TestClient(TestServer(build_app())) as client:
            reply = await client.get("/postcodes/" + self.code)
            return reply.status, await reply.json()

    def test_postcode(self):
        with loop_context() as loop:  # CULPRIT
            status, entry = loop.run_until_complete(self.fetch())
        self.assertEqual(status, 200)
        self.assertEqual(entry, REGISTER[self.code])


def main():
    load_register(120000)
    suite = unittest.TestSuite(PostcodeTest("%06d" % (number * 7)) for number in range(5000))
    print("ready", flush=True)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
