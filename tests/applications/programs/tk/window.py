import os
import queue
import sys
import threading
import tkinter
from pathlib import Path

window = tkinter.Tk()
label = tkinter.Label(window, text="ready")
label.pack()
answers = queue.Queue()


def ready():
    Path(os.environ["READY"]).touch()


def download():
    label.config(text="downloading")  # HANG join


def start():
    worker = threading.Thread(target=download)
    worker.start()
    ready()
    worker.join()  # HANG join


def answer():
    answers.put("yes")


def ask():
    window.after(100, answer)
    ready()
    label.config(text=answers.get())  # HANG queue


tkinter.Button(window, text="start", command=start).pack()
window.after(1000, {"idle": ready, "join": start, "queue": ask}[sys.argv[1]])
window.mainloop()
