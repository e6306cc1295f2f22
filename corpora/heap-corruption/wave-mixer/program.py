"""Mixes two voices into stereo frames for a station announcement; samples are 16 bits wide."""
import array
import ctypes
import math

RATE = 8000


def voice(pitch, seconds):
    count = int(RATE * seconds)
    return array.array("h", (int(9000 * math.sin(2 * math.pi * pitch * n / RATE)) for n in range(count)))


def interleaved(left, right):
    """Left and right sample by turns."""
    frames = array.array("h", bytes(4 * len(left)))
    frames[0::2] = left
    frames[1::2] = right
    return frames


def device_blocks(frames, seconds):
    """The blocks as the sound device takes them: one to play, one to fill."""
    size = int(RATE * seconds) * frames.itemsize  # CULPRIT
    playing, filling = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
    address, count = frames.buffer_info()
    ctypes.memmove(playing, address, count * frames.itemsize)  # CULPRIT
    return playing, filling


def main():
    seconds = 5
    frames = interleaved(voice(440, seconds), voice(554, seconds))
    print("ready", flush=True)
    playing, filling = device_blocks(frames, seconds)
    loudest = max(abs(sample) for sample in frames)
    del filling, playing
    print("loudest sample %d" % loudest)


if __name__ == "__main__":
    main()
