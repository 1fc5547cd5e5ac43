"""A page in headless Chromium, driven by Playwright."""

import shutil
from pathlib import Path
from typing import Any, Self

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60_000  # milliseconds that a busy machine may take to answer
needs_chromium = pytest.mark.skipif(
    not any(map(shutil.which, NAMES)), reason="chromium is not installed"
)


class Browser:
    """One tab; `complaints` and `requests` are those since the last page was opened."""

    def __init__(self) -> None:
        self._playwright = sync_api.sync_playwright().start()
        path = next(found for name in NAMES if (found := shutil.which(name)))
        self._browser = self._playwright.chromium.launch(executable_path=path)
        self.page = self._browser.new_page()
        self.page.set_default_timeout(PATIENCE)
        self._devtools = self.page.context.new_cdp_session(self.page)
        self._complaints: list[str] = []
        self._requests: list[str] = []
        self.page.on("request", lambda request: self._requests.append(request.url))
        self.page.on("console", lambda message: self._complaints.append(message.text))
        self.page.on("pageerror", lambda error: self._complaints.append(str(error)))

    def send(self, method: str, **params: Any) -> Any:
        """Send a command of the DevTools."""
        return self._devtools.send(method, params)

    def open(self, path: Path | str) -> None:
        """Load a file or an address anew, and wait until it is complete."""
        self.page.goto("about:blank")
        self._complaints.clear()
        self._requests.clear()
        self.page.goto(path if isinstance(path, str) else path.as_uri())

    def wait_for(self, condition: str) -> None:
        self.page.wait_for_function(f"() => {condition}", polling=50)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self.page.evaluate(f"() => ({expression.rstrip(';')})")

    def resize(self, width: int, height: int = 900, *, mobile: bool = False) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, scheme: Any, media: Any = "screen") -> None:
        """Emulate light or dark, and screen or paper."""
        self.page.emulate_media(color_scheme=scheme, media=media)

    def write(self, text: str) -> None:
        self.page.keyboard.insert_text(text)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)

    def print(self, path: Path) -> bytes:
        """Save the page as a PDF on A4."""
        return self.page.pdf(path=path, prefer_css_page_size=True, print_background=True)

    def complaints(self) -> list[str]:
        """Return errors and warnings: of scripts, of the console, of the content policy."""
        self.evaluate("0")  # messages sent before have arrived after this
        return list(self._complaints)

    def requests(self) -> list[str]:
        """Return the addresses that were requested, the page itself included."""
        self.evaluate("0")
        return list(self._requests)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._browser.close()
        self._playwright.stop()
