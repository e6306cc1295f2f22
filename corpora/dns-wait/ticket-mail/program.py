"""Support tickets: every change of a ticket is mailed to its owner by a notifier thread."""
import email.message
import queue
import smtplib
import socket
import sys
import threading

import nameserver


class Relay:
    """One connection to the mail relay, opened when it is first needed."""

    def __init__(self, host, timeout):
        self.host = host
        self.timeout = timeout
        self.session = None
        self.guard = threading.RLock()

    def connect(self):
        relay = socket.gethostbyname(self.host)  # CULPRIT
        self.session = smtplib.SMTP(relay, 25, timeout=self.timeout)

    def send(self, message):
        with self.guard:
            if self.session is None:
                self.connect()  # CULPRIT
            self.session.send_message(message)

    def queued(self):
        with self.guard:
            return self.session is not None


class Notifier(threading.Thread):
    def __init__(self, relay, server):
        super().__init__(name="notifier", daemon=True)
        self.relay = relay
        self.server = server
        self.changes = queue.Queue()
        self.under_way = threading.Event()

    def run(self):
        nameserver.ask(*self.server)
        while True:
            ticket, owner = self.changes.get()
            message = email.message.EmailMessage()
            message["To"], message["Subject"] = owner, "Ticket %d was changed" % ticket
            with self.relay.guard:
                self.under_way.set()
                self.relay.send(message)
            self.changes.task_done()


class Desk:
    def __init__(self, notifier):
        self.notifier = notifier
        self.tickets = {}

    def change(self, number, owner, text):
        self.tickets[number] = text
        self.notifier.changes.put((number, owner))

    def close_day(self):
        self.notifier.changes.join()
        return len(self.tickets)


def health(relay, every, ended):
    while not ended.wait(every):
        relay.queued()


def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9").rpartition(":")
    relay = Relay("relay.mail.office.example", timeout=3)
    notifier = Notifier(relay, (host, int(port)))
    notifier.start()
    desk = Desk(notifier)
    desk.change(7, "ana@office.example", "printer on floor 2")
    notifier.under_way.wait()
    desk.change(9, "bo@office.example", "new keyboard")
    threading.Thread(target=health, args=(relay, 0.05, threading.Event()), name="health", daemon=True).start()
    print("ready", flush=True)
    print(desk.close_day(), "tickets")


if __name__ == "__main__":
    main()
