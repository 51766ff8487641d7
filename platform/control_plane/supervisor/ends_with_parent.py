"""`python ends_with_parent.py PARENT_PID COMMAND...`: becomes COMMAND, which the kernel ends (SIGTERM) with its parent.

A program of its own instead of a function between fork and exec: the supervisor may have threads, and what their locks
guard cannot be used there. The wish outlives the exec below.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent_pid, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent_pid):  # it died before the line above took effect
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 - the supervisor's own command line


if __name__ == "__main__":
    main()
