"""Tasks of a web site's developers: build the pages, start the preview, check what it serves."""
import os
import sys

from invoke import Context, task


@task
def build(c):
    """Writes the pages."""
    done = c.run("echo 42 pages", hide=True, in_stream=False)
    return int(done.stdout.split()[0])


@task
def preview(c, port=0):
    """Starts the preview in the background."""
    command = "%s preview.py %d %d & echo preview runs" % (sys.executable, port, os.getpid())
    done = c.run(command, hide=True, in_stream=False)  # CULPRIT
    return done.stdout.strip()


@task
def check(c):
    """Builds, previews, and looks for dead links."""
    pages = build(c)
    print(pages, "pages,", preview(c))  # CULPRIT
    c.run("echo 0 dead links", in_stream=False)


def main():
    context = Context()
    context.config.run.echo = False
    print("ready", flush=True)
    check(context)


if __name__ == "__main__":
    main()
