"""Works out in which order modules must be built; a pool builds them."""
import collections
import concurrent.futures
import threading


class Module:
    def __init__(self, name, needs=()):
        self.name = name
        self.needs = tuple(needs)


class Graph:
    def __init__(self, modules):
        self.modules = {module.name: module for module in modules}

    def needs(self, name):
        return self.modules[name].needs


class Resolver:
    def __init__(self, graph):
        self.graph = graph

    def ready(self, name, placed):
        return all(need in placed for need in self.graph.needs(name))

    def order(self):
        waiting = collections.deque(self.graph.modules)
        placed = {}
        while waiting:  # CULPRIT
            name = waiting.popleft()
            if self.ready(name, placed):
                placed[name] = len(placed)
            else:
                waiting.append(name)
        return sorted(placed, key=placed.get)


class Builder:
    def __init__(self, graph, workers):
        self.graph = graph
        self.workers = workers
        self.pool = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="build")
        self.built = []

    def warm_up(self):
        gate = threading.Barrier(self.workers + 1)
        for _ in range(self.workers):
            self.pool.submit(gate.wait)
        gate.wait()

    def build(self):
        self.warm_up()
        print("ready", flush=True)
        order = Resolver(self.graph).order()
        self.built.extend(self.pool.map(str.upper, order))


def main():
    graph = Graph([
        Module("core"),
        Module("net", ["core"]),
        Module("ui", ["net", "theme"]),
        Module("theme", ["plugins"]),
        Module("plugins", ["ui"]),
    ])
    Builder(graph, workers=8).build()


if __name__ == "__main__":
    main()
