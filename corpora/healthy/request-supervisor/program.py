"""Requests to a peer that may never answer; a supervisor cancels those that are too old."""
import asyncio


class Requests:
    def __init__(self, patience):
        self.patience = patience
        self.started = {}
        self.given_up = 0

    async def request(self, number):
        self.started["request-%d" % number] = asyncio.get_running_loop().time()
        return await asyncio.get_running_loop().create_future()  # the peer does not answer

    async def supervise(self):
        while True:
            await asyncio.sleep(0.3)
            now = asyncio.get_running_loop().time()
            for task in asyncio.all_tasks():
                if now - self.started.get(task.get_name(), now) > self.patience:
                    task.cancel()
                    self.given_up += 1
            print("given up", self.given_up, flush=True)


async def main():
    requests = Requests(patience=20)
    supervisor = asyncio.ensure_future(requests.supervise())
    tasks = [asyncio.ensure_future(requests.request(number)) for number in range(3)]
    for number, task in enumerate(tasks):
        task.set_name("request-%d" % number)
    print("ready", flush=True)
    print(await asyncio.gather(*tasks, return_exceptions=True))
    supervisor.cancel()


if __name__ == "__main__":
    asyncio.run(main())
