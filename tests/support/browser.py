"""Headless Chromium, driven as a user would: by what is written on the page."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WAIT_SECONDS = 100.0
DESKTOP = (1280, 900)
PHONE = (360, 780)
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
# What is searched for stands in the dialog, if one is open.
_ROOT = "(//dialog[@open] | //body[not(.//dialog[@open])])"


def why_no_browser() -> str | None:
    """Why there is no browser here, or None."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed (Debian: chromium, chromium-driver)"
    for module in ("selenium", "axe_core_python"):
        if find_spec(module) is None:
            return f"{module} is not installed (the extra `test` brings it)"
    return None


class Browser:
    """One tab. All methods wait for what they need, up to WAIT_SECONDS."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.base = ""
        self.look()

    def look(self, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> None:
        """Set the size of the window, and whether the system is light or dark."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def log_in(self, headers: dict[str, str]) -> None:
        """Send these headers with all requests."""
        self.driver.execute_cdp_cmd("Network.enable", {})
        self.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": headers})

    def open(self, place: str) -> None:
        """Open a place of the console in a new document, and wait until it has its data."""
        self.leave()
        self.driver.get(f"{self.base}/#/{place}")
        self.until(lambda: self.is_there("main h1") and not self.is_there(".loading"))

    def slow_down(self, latency_ms: int) -> None:
        """Let each request take so much longer, until this is called with 0."""
        self.driver.execute_cdp_cmd("Network.enable", {})
        conditions = {"offline": False, "latency": latency_ms}
        conditions |= {"downloadThroughput": -1, "uploadThroughput": -1}
        self.driver.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)

    def leave(self) -> None:
        """Leave the console: its server may end."""
        self.driver.get("about:blank")

    def until(self, is_so: Callable[[], Any]) -> Any:
        """Wait for a condition, and return what it returned. The page's text is in the error."""
        from selenium.common.exceptions import (
            ElementClickInterceptedException,
            StaleElementReferenceException,
            TimeoutException,
        )
        from selenium.webdriver.support.ui import WebDriverWait

        # A page may be made again, or a dialog may open, before an element is clicked.
        again = [ElementClickInterceptedException, StaleElementReferenceException]
        waiting = WebDriverWait(self.driver, WAIT_SECONDS, 0.05, again)
        try:
            return waiting.until(lambda _: is_so())
        except TimeoutException:
            raise AssertionError(f"it has not come; the page says: {self.text}") from None

    # -- what is there ----------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """All that can be read."""
        return str(self.driver.execute_script("return document.body.innerText"))

    @property
    def place(self) -> str:
        """The part of the address behind the #."""
        return str(self.driver.execute_script("return location.hash"))

    def see(self, *texts: str) -> None:
        """Wait until all these can be read."""
        self.until(lambda: all(text in self.text for text in texts))

    def address_of(self, name: str) -> str:
        """Where the link of this name leads."""
        path = f'{_ROOT}//a[normalize-space()="{name}"]'
        return str(self.until(lambda: self._element(path).get_attribute("href")))

    @property
    def clipboard(self) -> str:
        """What was copied."""
        expression = "navigator.clipboard.readText()"
        answer = self.driver.execute_cdp_cmd(
            "Runtime.evaluate", {"expression": expression, "awaitPromise": True}
        )
        return str(answer["result"]["value"])

    def is_there(self, selector: str) -> bool:
        """Whether an element is there that a CSS selector matches."""
        return bool(self.driver.find_elements("css selector", selector))

    def buttons(self) -> set[str]:
        """The names of all buttons."""
        script = (
            "return [...document.querySelectorAll('button')].map("
            "(button) => button.getAttribute('aria-label') ?? button.innerText)"
        )
        return set(self.driver.execute_script(script))

    def problems(self) -> list[str]:
        """Errors that scripts, or the rules of the page's content, have had since the last call.

        Not those of requests: the page shows what the server has refused.
        """
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] == "SEVERE" and entry["source"] != "network"
        ]

    def is_wider_than_the_window(self) -> bool:
        """Whether the page scrolls sideways."""
        script = "return document.documentElement.scrollWidth > window.innerWidth"
        return bool(self.driver.execute_script(script))

    def findings_of_axe(self) -> list[str]:
        """What axe-core finds that is serious or critical."""
        import axe_core_python

        assert axe_core_python.__file__ is not None
        source = Path(axe_core_python.__file__).with_name("axe.min.js").read_text()
        # Not by an element of the page: its rules allow scripts of its own server only.
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": source})
        options = "{resultTypes: ['violations']}"
        expression = f"axe.run({options}).then((result) => JSON.stringify(result.violations))"
        answer = self.driver.execute_cdp_cmd(
            "Runtime.evaluate", {"expression": expression, "awaitPromise": True}
        )
        return [
            f"{finding['id']}: {node['html'][:200]} {node['failureSummary']}"
            for finding in json.loads(answer["result"]["value"])
            if finding["impact"] in ("serious", "critical")
            for node in finding["nodes"]
        ]

    # -- what a user does -------------------------------------------------------------------------

    def click(self, name: str) -> None:
        """Press the button or the link of this name."""
        path = (
            f"{_ROOT}//*[self::button or self::a or self::summary]"
            f'[normalize-space()="{name}" or @aria-label="{name}"]'
        )
        self._press(path)

    def _press(self, path: str) -> None:
        """Click an element. A page that is made again meanwhile has another one."""

        def pressed() -> bool:
            self._element(path).click()
            return True

        self.until(pressed)

    def fill(self, label: str, text: str) -> None:
        """Write into the field with this label."""
        field = self._field(label)
        field.clear()
        field.send_keys(text)

    def choose(self, label: str, option: str) -> None:
        """Choose an option of a list."""
        from selenium.webdriver.support.ui import Select

        Select(self._field(label)).select_by_visible_text(option)

    def check(self, label: str) -> None:
        """Set or clear a check mark."""
        self._press(f"{_ROOT}//label[contains(@class, 'check')][contains(., '{label}')]")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    @property
    def focus(self) -> str:
        """The text, or the label, of what has the focus."""
        script = (
            "const there = document.activeElement;"
            "return there.getAttribute('aria-label') ?? there.innerText"
        )
        return str(self.driver.execute_script(script))

    def _field(self, label: str) -> Any:
        kinds = "*[self::input or self::select or self::textarea]"
        return self._element(
            f"{_ROOT}//label[./span[normalize-space()='{label}']]//{kinds}"
            f" | {_ROOT}//{kinds}[@aria-label='{label}']"
        )

    def _element(self, path: str) -> Any:
        def found() -> Any:
            shown = [e for e in self.driver.find_elements("xpath", path) if e.is_enabled()]
            return shown[0] if shown else None

        return self.until(found)


@contextmanager
def running_browser(directory: Path) -> Iterator[Browser]:
    """A browser inside the `with`, with a profile in the directory."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for option in (*_OPTIONS, f"--user-data-dir={directory}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    # Someone who clicks may copy. Without a window, the browser must be told so.
    permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    driver.execute_cdp_cmd("Browser.grantPermissions", permissions)
    try:
        yield Browser(driver)
    finally:
        driver.quit()
