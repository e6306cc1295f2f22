"""Sends mails from a background thread."""
import queue
import threading

mails = queue.Queue()
sent = []


def deliver():
    while True:
        mail = mails.get()  # CULPRIT
        sent.append(mail)
        mails.task_done()


threading.Thread(target=deliver, name="delivery").start()
for number in range(3):
    mails.put("mail %d" % number)
mails.join()
print("ready", flush=True)
