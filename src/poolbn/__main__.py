"""`python -m poolbn` is the command line, and `poolbn` is the same."""

from __future__ import annotations

import os
import select
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command line, and end with its exit code."""
    if sys.stdout is None:  # it was closed
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    try:
        output: int | None = os.dup(1)  # what prints closes it where nobody reads on
    except OSError:
        output = None
    code = _run()
    left = _reader_left(output)
    try:
        sys.stdout.flush()
    except OSError as error:
        # Else Python tries once more when it ends, and prints a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = code or (0 if left else _tell(error))
    # What prints ends with 1 where nobody reads on, as below `| head`, which is no error.
    sys.exit(0 if left and code == 1 else code)


def _reader_left(output: int | None) -> bool:
    """Whether standard output is a pipe that nobody reads any more."""
    if output is None or not hasattr(select, "poll"):
        return False
    pipe = select.poll()
    pipe.register(output, 0)
    return any(event & select.POLLERR for _, event in pipe.poll(0))


def _run() -> int:
    """The exit code. Ctrl-C ends the program with a word from its first moments on."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    from poolbn.cli.app import app

    try:
        signal.signal(signal.SIGINT, usual)
        app()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except KeyboardInterrupt:
        _interrupted()
    except (MemoryError, OSError) as error:
        return _tell(error)
    return 0


def _interrupted(number: int = signal.SIGINT, frame: FrameType | None = None) -> None:
    """End at once: nothing runs yet that has to be put in order."""
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


def _tell(error: MemoryError | OSError) -> int:
    """Say what went wrong outside of poolbn; the exit code."""
    from poolbn.cli.terminal import WRONG, misfortune

    words = misfortune(error)
    if words is None:
        raise error
    os.write(2, f"error: {words}\n".encode())
    return WRONG


if __name__ == "__main__":
    main()
