"""A real headless Chromium, driven over a pipe by its DevTools protocol: no other program, no port.

with Chromium(folder) as browser:
    page = browser.open("file:///tmp/index.html")
    page.evaluate("document.title")
    assert page.complaints() == []
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.parts import need
from tests.waiting import STUCK_S

WORDS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-component-update", "--hide-scrollbars")
COMPLAINTS = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}


class Chromium:
    """One process of the browser. `folder` is for its profile."""

    def __init__(self, folder: Path) -> None:
        self.events: list[dict[str, Any]] = []
        self._numbers = itertools.count(1)
        self._rest = b""
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        # The browser reads from 3 and writes to 4; a shell puts the two pipes there.
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(
            [
                "bash",
                "-c",
                command,
                need("chromium"),
                *WORDS,
                "--remote-debugging-pipe",
                f"--user-data-dir={folder / 'profile'}",
            ],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
        )
        os.close(to_browser)
        os.close(from_browser)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._send("Browser.close", {}, "")
        os.close(self._to)
        try:
            self.process.wait(timeout=STUCK_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._from)

    def open(self, address: str, *, width: int = 1100, height: int = 900, dark: bool = False, script: bool = True) -> Tab:
        """Return a tab of that size with the page loaded. Without `script`, the page's scripts do not run."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        tab = Tab(self, self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])
        for method in ("Page.enable", "Runtime.enable", "Log.enable"):
            tab.call(method)
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        tab.call("Emulation.setScriptExecutionDisabled", value=not script)
        tab.go(address)
        return tab

    def call(self, method: str, params: dict[str, Any], session: str = "") -> Any:
        """Return the result of a command. Raises AssertionError if the browser refuses it."""
        number = self._send(method, params, session)
        answer = self._read_until(lambda message: message.get("id") == number)
        assert "error" not in answer, f"{method}: {answer.get('error')}"
        return answer["result"]

    def wait_for(self, method: str, session: str) -> None:
        """Read messages until this event of the tab has arrived."""
        self._read_until(lambda message: message.get("method") == method and message.get("sessionId") == session)

    def _send(self, method: str, params: dict[str, Any], session: str) -> int:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        return number

    def _read_until(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            while b"\0" in self._rest:
                piece, _, self._rest = self._rest.partition(b"\0")
                message: dict[str, Any] = json.loads(piece)
                if message.get("method") in COMPLAINTS:
                    self.events.append(message)
                if is_wanted(message):
                    return message
            ready, _, _ = select.select([self._from], [], [], STUCK_S)
            data = os.read(self._from, 1 << 16) if ready else b""
            assert data, "the browser does not answer"
            self._rest += data


class Tab:
    """An open page."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **params: Any) -> Any:
        """Return the result of a command to this tab."""
        return self._browser.call(method, params, self._session)

    def go(self, address: str) -> None:
        """Load another page completely."""
        self.call("Page.navigate", url=address)
        self.wait_until_loaded()

    def wait_until_loaded(self) -> None:
        """Wait until the next page is loaded, even if the page itself loads it."""
        self._browser.wait_for("Page.loadEventFired", self._session)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page. Raises AssertionError if it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def type_into(self, selector: str, text: str) -> None:
        """Put the cursor into a field and type."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Activate the element that the selector matches, as a click, a tap or its key would."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def press(self, key: str, text: str = "") -> None:
        """Press and release a key; `text` is what it types, if anything."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, **({"text": text} if text else {}))

    def texts(self, selector: str) -> list[str]:
        """Return the text of every visible element that the selector matches."""
        visible_items = f"[...document.querySelectorAll({json.dumps(selector)})].filter(item => item.checkVisibility())"
        texts: list[str] = self.evaluate(f"{visible_items}.map(item => item.textContent.trim())")
        return texts

    def complaints(self) -> list[Any]:
        """Return everything on the browser's console: errors of scripts, and whatever a policy refused."""
        return [event["params"] for event in self._browser.events if event.get("sessionId") == self._session]

    def take_picture(self) -> bytes:
        """Return a screenshot as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
