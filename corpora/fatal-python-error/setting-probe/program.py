"""Reads optional settings straight from a plug-in's namespace, without the cost of attribute look-ups."""
import ctypes

api = ctypes.pythonapi
api.PyDict_GetItemString.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyDict_GetItemString.restype = ctypes.py_object  # CULPRIT


class Plugin:
    def __init__(self, name, **settings):
        self.name = name
        self.colour = None
        self.limit = None
        self.__dict__.update(settings)


def setting(plugin, name):
    return api.PyDict_GetItemString(plugin.__dict__, name.encode())  # CULPRIT


def unset(plugins, names):
    count = 0
    for plugin in plugins:
        for name in names:
            if setting(plugin, name) is None:
                count += 1
    return count


def main():
    plugins = [Plugin("export-%d" % number) for number in range(20)]
    print("ready", flush=True)
    total = 0
    for _ in range(2000):
        total += unset(plugins, ("colour", "limit"))
    print("%d unset" % total)


if __name__ == "__main__":
    main()
