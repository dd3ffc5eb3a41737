"""Headless Chromium for tests, driven by its DevTools protocol over a pipe: no package needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-extensions", "--no-first-run", "--no-default-browser-check", "--mute-audio",
    "--remote-debugging-pipe",
)  # fmt: skip
_PATIENCE = 60.0  # seconds for an answer


def browser() -> str | None:
    """The path of a browser, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One browser with one page.

    Attributes:
        events: what the browser told, in order, as {"method": ..., "params": ...}.
    """

    def __init__(self, folder: Path) -> None:
        program = browser()
        assert program is not None
        self.events: list[dict[str, Any]] = []
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # Chromium reads from 3 and writes to 4. With high numbers first, none is in the way.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (theirs_in, theirs_out)]
        connected = f'exec "$@" 3<&{high[0]} 4>&{high[1]}'
        command = [program, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", connected, "bash", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=high,
            start_new_session=True,
        )
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        try:
            pages = self.call("Target.getTargets")["targetInfos"]
            target = next(page["targetId"] for page in pages if page["type"] == "page")
            attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session is not None and not method.startswith(("Target.", "Browser.")):
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._in, 2**20) if ready else b""
            if not part:
                raise RuntimeError(f"the browser ended, or said nothing for {_PATIENCE:.0f} s")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def wait_for(self, method: str) -> dict[str, Any]:
        """The next event of this kind."""
        while True:
            event = self._read()
            self.events.append(event)
            if event.get("method") == method:
                return event["params"]

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Let the browser work until something is done."""
        until = time.monotonic() + _PATIENCE
        while not done():
            if time.monotonic() > until:
                raise RuntimeError(f"it was not done in {_PATIENCE:.0f} s")
            self.settle()

    def size(self, width: int, height: int) -> None:
        """The size of the window."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)  # fmt: skip

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded and drawn."""
        self.events.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        self.wait_for("Page.loadEventFired")
        self.settle()

    def settle(self) -> None:
        """Wait until the page is drawn."""
        self.run(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
            ".then(() => true)"
        )

    def run(self, code: str) -> Any:
        """The value of a JavaScript expression; promises are waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{code}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click in the middle of an element; of a line, on a point of it."""
        it = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{it}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.settle()  # on a busy machine a click can come before the page has moved
        x, y = self.run(
            f"""(() => {{
              const it = {it};
              if (it.getPointAtLength) {{
                const at = it.getPointAtLength(it.getTotalLength() / 2);
                const on = new DOMPoint(at.x, at.y).matrixTransform(it.getScreenCTM());
                return [on.x, on.y];
              }}
              const [box] = it.getClientRects(); // of a link in two lines the first
              return [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def press(self, key: str) -> None:
        """Press and release a key."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowRight": 39, "ArrowDown": 40}
        told = {"key": key, "code": "Space" if key == " " else key,
                "windowsVirtualKeyCode": codes[key]}  # fmt: skip
        letter = {"Enter": "\r", " ": " "}.get(key, "")
        self.call("Input.dispatchKeyEvent", type="keyDown", text=letter, **told)
        self.call("Input.dispatchKeyEvent", type="keyUp", **told)
        self.settle()

    def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Save a picture of what is seen, or of the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])
