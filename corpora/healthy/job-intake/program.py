"""Takes jobs from clients on a socket; a worker runs them in order."""
import queue
import socket
import threading


class Intake(threading.Thread):
    def __init__(self, jobs):
        super().__init__(name="intake", daemon=True)
        self.jobs = jobs
        self.server = socket.create_server(("127.0.0.1", 0))

    def run(self):
        while True:
            client, _ = self.server.accept()
            with client, client.makefile() as lines:
                for line in lines:
                    self.jobs.put(line.strip())


class Worker:
    def __init__(self, jobs):
        self.jobs = jobs
        self.done = []

    def run(self):
        while True:
            self.done.append(self.jobs.get())
            print("done", self.done[-1], flush=True)


def main():
    jobs = queue.Queue()
    intake = Intake(jobs)
    intake.start()
    client = socket.create_connection(intake.server.getsockname())
    client.sendall(b"clean\nbuild\n")
    print("ready", flush=True)
    Worker(jobs).run()


if __name__ == "__main__":
    main()
