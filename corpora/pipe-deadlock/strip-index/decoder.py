"""Stands in for the decoder: raw frames to its standard output, a line about each to its standard error."""
import os

FRAME = 64 * 36 * 3
LINE = "frame=%5d fps= 25 q=-0.0 size=%8dkB time=00:00:%05.2f speed=1.0x  [h264 @ 0x55d0] reference missing\n"

for number in range(3000):
    os.write(2, (LINE % (number, number * FRAME // 1024, number / 25 % 60)).encode())
    frame = bytes([number % 251]) * FRAME
    while frame:
        frame = frame[os.write(1, frame) :]
