"""A session store that logs, and a log handler that looks sessions up."""
import logging
import threading
import time


class SessionStore:
    def __init__(self):
        self._guard = threading.Lock()
        self._users = {}
        self.log = logging.getLogger("sessions")

    def open(self, session, user, hold=None):
        with self._guard:
            self._users[session] = user
            if hold is not None:
                hold()
            self.log.warning("session %s opened", session)  # CULPRIT

    def user_of(self, session):
        with self._guard:  # CULPRIT
            return self._users.get(session, "nobody")


class AuditHandler(logging.Handler):
    """Adds the user's name to each record that carries a session."""

    def __init__(self, store):
        super().__init__()
        self.store = store
        self.entered = threading.Event()
        self.lines = []

    def emit(self, record):
        session = getattr(record, "session", None)
        if session is not None:
            self.entered.set()
            time.sleep(0.2)  # the formatter is slow
            self.lines.append((self.store.user_of(session), record.getMessage()))


class Application:
    def __init__(self):
        self.store = SessionStore()
        self.handler = AuditHandler(self.store)
        logging.getLogger().addHandler(self.handler)

    def request(self):
        logging.getLogger("http").warning("GET /", extra={"session": "s1"})

    def sign_in(self):
        self.store.open("s2", "ben", hold=self.handler.entered.wait)


def main():
    application = Application()
    worker = threading.Thread(target=application.request, name="http-worker", daemon=True)
    worker.start()
    print("ready", flush=True)
    application.sign_in()
    worker.join()


if __name__ == "__main__":
    main()
