"""One line a check, for the steps of tests/real/run.

Prints `ok - NAME` or `not ok - NAME` with the reasons below it in lines that begin with `#`. Counting is left to
tests/real/run. Never decides by itself that something is fine: an exception is a failed check.
"""

import signal
import sys
import traceback

_failed = 0


def note(text):
    """Prints something worth knowing that is no check."""
    for line in str(text).splitlines():
        print("#", line, flush=True)


def check(name, holds, *reasons):
    """Prints the verdict, and when it is bad the reasons; returns whether it is good."""
    global _failed
    print("ok -" if holds else "not ok -", name, flush=True)
    if not holds:
        _failed += 1
        for reason in reasons:
            note(reason)
    return bool(holds)


def check_equal(name, found, wanted, *reasons):
    """As `check`, for two values that must be the same; says both when they are not."""
    return check(name, found == wanted, f"found  {found!r}", f"wanted {wanted!r}", *reasons)


def run(step):
    """Runs a step's main function and ends the process with 0 or 1. SIGTERM unwinds, so that `with` blocks clean up."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    try:
        step()
    except Exception:
        check(f"{step.__module__}.{step.__name__} runs to its end", False, traceback.format_exc())
    sys.exit(1 if _failed else 0)
