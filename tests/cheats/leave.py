"""Policies of which one run leaves traces for the next, in every way of the table TRACES. Each run reports on standard error
what it found of an earlier one: `forked NAME: nothing` or `forked NAME: GOT what`, `started` in an interpreter of its own.
Run as a program it does both in one process, where each is found. tests/golden/cheats.sh runs it."""

import builtins
import collections
import os
import random
import signal
import sys
import threading

import xpusim.wire
from xpusim import Policy
from fcfs import Fcfs

FORKED = "xpusim.zygote" in sys.modules  # the trusted part is there already


def attribute(of):
    """A trace at an object that outlives a run where the process does."""
    def look():
        return getattr(of, "left_by_a_run", None)

    def leave():
        of.left_by_a_run = "a trace"
    return look, leave


def pipe_look():
    for fd in range(3, 64):
        try:
            os.set_blocking(fd, False)
            return os.read(fd, 16)
        except OSError:
            continue
    return None


def pipe_leave():
    os.write(os.pipe()[1], b"a trace")


def thread_leave():
    threading.Thread(target=threading.Event().wait, args=(5,), daemon=True).start()


def handler_look():
    return None if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL else "a trace"


TRACES = {
    "builtin": attribute(builtins),
    "package": attribute(xpusim.wire),
    "class_of_package": attribute(Policy),
    "library": attribute(collections),
    "class_of_library": attribute(random.Random),
    "environment": (lambda: os.environ.get("LEFT"), lambda: os.environ.__setitem__("LEFT", "a trace")),
    "modules": (lambda: sys.modules.get("left_by_a_run"), lambda: sys.modules.__setitem__("left_by_a_run", os)),
    "pipe": (pipe_look, pipe_leave),
    "thread": (lambda: threading.active_count() - 1 or None, thread_leave),
    "handler": (handler_look, lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN)),
}


def look():
    for name, (found, _) in TRACES.items():
        got = found()
        print("%s %s: %s" % ("forked" if FORKED else "started", name, "nothing" if got is None else "GOT %r" % (got,)),
              file=sys.stderr)


def leave():
    for _, make in TRACES.values():
        make()


class Leave(Policy):
    """Leaves traces, and serves nobody."""

    def init(self):
        look()
        leave()
        raise SystemExit("left traces")


class Abort(Fcfs):
    """Serves where it is started, and crashes in a fork."""

    def init(self):
        if FORKED:
            os.abort()
        super().init()


class Late(Fcfs):
    """Serves where it is started, and hangs in a fork; it cannot be asked to end."""
    limit_s = 1

    def init(self):
        if FORKED:
            signal.pause()
        super().init()


class Served(Fcfs):
    """Reports at its end where it was."""

    def exit(self):
        if FORKED:
            print("a fork of the zygote: served", file=sys.stderr)


class Raised(Fcfs):
    """Fails in a fork, with a reason."""

    def init(self):
        if FORKED:
            raise ValueError("a fork of the zygote")
        super().init()


if __name__ == "__main__":
    leave()
    FORKED = False
    look()
