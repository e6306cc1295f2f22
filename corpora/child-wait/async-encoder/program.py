"""Encodes clips with an external program, a few at a time, on asyncio."""
import asyncio
import sys


class Encoder:
    def __init__(self, command):
        self.command = command

    async def encode(self, clip):
        process = await asyncio.create_subprocess_exec(
            *self.command, clip, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate()  # CULPRIT
        return clip, process.returncode, len(output)


async def main():
    encoder = Encoder(["tail", "-f"])
    print("ready", flush=True)
    for clip in sys.argv[1:] or ["/dev/null"]:
        print(*await encoder.encode(clip))


if __name__ == "__main__":
    asyncio.run(main())
