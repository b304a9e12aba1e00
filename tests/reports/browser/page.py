"""One page in the browser: open it, look at it, use it."""

import base64
from pathlib import Path
from typing import Any

from tests.reports.browser.chromium import Chromium


class Page:
    """A tab that shows one file, `width` CSS pixels wide, in light or dark."""

    def __init__(self, browser: Chromium, file: Path, *, width: int = 1400, scheme: str = "light") -> None:
        self.browser = browser
        browser.events.clear()
        context = browser.send("Target.createBrowserContext")["browserContextId"]
        target = browser.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.send("Page.navigate", url=file.as_uri())
        loaded = "new Promise(done => document.readyState === 'complete' ? done(1) : addEventListener('load', () => done(1)))"
        while self.run("location.href") == "about:blank":
            pass
        self.run(loaded)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command to this page."""
        return self.browser.send(method, self.session, **parameters)

    def run(self, script: str) -> Any:
        """The value of an expression; a promise is waited for, as if a user had clicked."""
        result = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """A key, as the keyboard sends it."""
        codes = {"Tab": 9, "Enter": 13}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        given = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "text": text}
        self.send("Input.dispatchKeyEvent", type="keyDown", **given)
        self.send("Input.dispatchKeyEvent", type="keyUp", **given)

    def type(self, text: str) -> None:
        """Text into what has the focus, and time for the page to take it in."""
        self.send("Input.insertText", text=text)
        self.run("new Promise(done => setTimeout(done, 200))")

    def screenshot(self) -> bytes:
        """The visible part, as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot")["data"])

    def complaints(self) -> list[dict[str, Any]]:
        """Errors, refused content, dialogs and requests other than for the page itself."""
        wrong = ("Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening")
        asked = [event for event in self.browser.events if event["method"] == "Network.requestWillBeSent"]
        return [event for event in self.browser.events if event["method"] in wrong] + asked[1:]
