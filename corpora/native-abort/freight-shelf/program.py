"""Looks up shelves for freight by number; the bounds are checked by the C++ library's own function."""
import ctypes

cxx = ctypes.CDLL("libstdc++.so.6")
# std::__throw_out_of_range_fmt, which std::vector::at calls
refuse = cxx._ZSt24__throw_out_of_range_fmtPKcz
SHELVES = ["north", "east", "south", "west"]


def shelf(number):
    if number >= len(SHELVES):
        refuse(b"shelf %zu of %zu", ctypes.c_size_t(number), ctypes.c_size_t(len(SHELVES)))  # CULPRIT
    return SHELVES[number]


def main():
    for number in (2, 0, 5):
        print(number, shelf(number), flush=True)


if __name__ == "__main__":
    print("ready", flush=True)
    main()
