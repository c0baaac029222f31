"""The HTML report in a real browser: Chromium without a window, driven through its DevTools pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcheck.case import Case, Role, Tensor
from kcheck.events import CaseVerdict, Discovery, TargetResult
from kcheck.findings import Finding, Kind
from kcheck.layout import Dim, Layout
from kcheck.reports.html_report import render_html
from kcheck.reports.record import RunRecord

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium")

# Chromium reads its commands from descriptor 3 and answers on 4; the pipes have other numbers here.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
# Text nodes whose colour is too close to the colour behind them, by the formula of WCAG 2.
FAINT = """
(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const color = channels(getComputedStyle(element).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    throw new Error("nothing behind");
  };
  const faint = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || parent.closest("script, title")) continue;
    seen++;
    const style = getComputedStyle(parent);
    const color = parent.closest("svg") ? style.fill : style.color;
    const [high, low] = [light(channels(color)), light(behind(parent))].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)} ${walker.currentNode.data}`);
  }
  return [seen, faint];
})()
"""


class Browser:
    """One tab of a Chromium.

    Args:
        profile: Folder for what Chromium keeps.

    Attributes:
        events: Events so far, method and parameters.
    """

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        commands, self._out = os.pipe()
        into, answers = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        command = [CHROMIUM, *flags, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        launch = [sys.executable, "-c", LAUNCH, str(commands), str(answers), *command]
        self._process = subprocess.Popen(launch, pass_fds=(commands, answers), stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self._in = os.fdopen(into, "rb")
        self._rest = b""
        self._count = 0
        self._session: dict[str, str] = {}
        self.events: list[tuple[str, dict[str, Any]]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params} | self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._in.fileno(), 1 << 16)
            assert chunk, "Chromium has ended"
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append((message["method"], message.get("params", {})))
        return message

    def open(self, file: Path, width: int = 1400, **media: str) -> None:
        """Show a file in a window of this width, with these media features (``prefers_color_scheme="dark"``)."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.events.clear()
        self.call("Page.navigate", url=file.as_uri())
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            self._read()

    def run(self, code: str) -> Any:
        """The value of an expression in the page, as after a click of the user."""
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def close(self) -> None:
        """End Chromium."""
        self.call("Browser.close")
        self._process.wait(30)
        os.close(self._out)
        self._in.close()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()


HOSTILE = "</script><script>alert(1)</script><img src=http://x.invalid/ onerror=alert(1)>" + "wide" * 100


@pytest.fixture
def report(results: tuple[TargetResult, ...], wild_read: Discovery, tmp_path: Path) -> Path:
    """A report with everything in it: two bugs, a known one, wide pictures, long names, hostile ones."""
    table = Layout((Dim(256), Dim(4096, before=4, after=8192)), offset=3)
    case = Case(x=Tensor("int32", table, role=Role.INDEX))
    finding = Finding(
        Kind.OUT_OF_VIEW_READ,
        HOSTILE,
        file="/long" * 99,
        line=3,
        source=f"x = '{HOSTILE}'",
        argument="x",
        cells=(-1, 9),
    )
    wide = Discovery("wide", HOSTILE, finding, "f" * 12, case, culprit="x")
    known = Discovery("wide", HOSTILE, finding, "e" * 12, case, known="https://x.invalid/" + "7" * 200)
    last = TargetResult(
        HOSTILE, CaseVerdict.FINDINGS, (HOSTILE,), (HOSTILE,), discoveries=(wide, known), matrix={HOSTILE: {}}
    )
    file = tmp_path / "report.html"
    versions = {"kcheck": "0.1.0", "torch": "2.13.0"}
    record = RunRecord("interpret", 42, versions, ("gather", "scatter", HOSTILE), (*results, last), False, 15.5)
    file.write_text(render_html(record), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_never_scrolls_sideways(chromium: Browser, report: Path, width: int) -> None:
    """What is too wide scrolls inside itself, can be reached by Tab, and has a name."""
    chromium.open(report, width)
    assert chromium.run("document.documentElement.scrollWidth") <= width
    assert chromium.run("document.querySelector('main').scrollWidth") <= width
    inside = chromium.run(
        """new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(
            [...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth)
            .map((e) => [e.tabIndex, e.getAttribute("role"), e.getAttribute("aria-label")])))))"""
    )
    assert {tab for tab, _, _ in inside} == {0}
    assert {role for _, role, _ in inside} == {"region"}
    wide = {"source"} if width == 1400 else {"source", "layout matrix", "backing of x"}
    assert wide <= {label for _, _, label in inside}
    stops = "[...document.querySelectorAll('.scroll[tabindex]')]"
    assert chromium.run(f"{stops}.every((e) => e.scrollWidth > e.clientWidth)")


def test_nothing_runs_and_nothing_is_fetched(chromium: Browser, report: Path) -> None:
    """Hostile text is text: one file, one script, no dialog, no complaint of the browser."""
    chromium.open(report)
    assert chromium.run("document.scripts.length") == 1
    assert chromium.run("document.images.length") == 0
    asked = [event["request"]["url"] for method, event in chromium.events if method == "Network.requestWillBeSent"]
    assert asked == [report.as_uri()]
    bad = ("Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Log.entryAdded")
    assert [event for event in chromium.events if event[0] in bad] == []


def test_the_policy_stops_what_would_get_through(chromium: Browser, report: Path) -> None:
    """The second wall: even an element that were made of hostile text could do nothing."""
    file = report.with_name("broken.html")
    evil = "<script>document.title = 'broken'</script><img src='http://x.invalid/a.png'><main>"
    file.write_text(report.read_text(encoding="utf-8").replace("<main>", evil, 1), encoding="utf-8")
    chromium.open(file)
    assert "kcheck" in chromium.run("document.title")
    text = json.dumps([event for method, event in chromium.events if method == "Log.entryAdded"])
    assert "script-src" in text
    assert "img-src" in text or "default-src" in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("severity", ["error", "warning", "note"])
def test_contrast(chromium: Browser, report: Path, scheme: str, severity: str) -> None:
    """WCAG AA, 4.5 to 1, for every text, in both schemes."""
    text = report.read_text(encoding="utf-8").replace('<article class="error"', f'<article class="{severity}"')
    report.write_text(text, encoding="utf-8")
    chromium.open(report, prefers_color_scheme=scheme)
    paper = chromium.run("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(paper) < 60) == (scheme == "dark")
    seen, faint = chromium.run(FAINT)
    assert seen > 100
    assert faint == []


COPY = "document.querySelector('button.copy')"
COPIED = f"""
new Promise((done) => {{
  const status = document.getElementById("status");
  new MutationObserver(() => done([{COPY}.textContent, status.textContent])).observe(status, {{childList: true}});
  {COPY}.click();
}})
"""


def test_the_button_copies(chromium: Browser, report: Path, wild_read: Discovery) -> None:
    """From a file, by the clipboard's interface; the button and the status say so."""
    chromium.open(report)
    chromium.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }; 1")
    assert chromium.run(COPIED) == ["✓ Copied", "The replay command is copied."]
    assert chromium.run("window.copied") == wild_read.replay


def test_the_button_copies_without_a_clipboard(chromium: Browser, report: Path, wild_read: Discovery) -> None:
    """As in a page without https: the text is selected and copied."""
    chromium.open(report)
    chromium.run("Object.defineProperty(navigator, 'clipboard', {value: undefined}); 1")
    chromium.run("document.addEventListener('copy', () => { window.copied = String(getSelection()); }); 1")
    assert chromium.run(COPIED) == ["✓ Copied", "The replay command is copied."]
    assert chromium.run("window.copied") == wild_read.replay
    assert chromium.run("String(getSelection())") == ""


def test_the_button_says_what_to_do_where_nothing_copies(chromium: Browser, report: Path, wild_read: Discovery) -> None:
    """The command stays selected."""
    chromium.open(report)
    chromium.run("navigator.clipboard.writeText = async () => { throw new Error('no permission'); }; 1")
    chromium.run("document.execCommand = () => false; 1")
    button, status = chromium.run(COPIED)
    assert button == "Press Ctrl+C"
    assert "Press Ctrl+C" in status
    assert chromium.run("String(getSelection())") == wild_read.replay


def test_pointing_at_a_cell_says_its_index(chromium: Browser, report: Path) -> None:
    """At once below the picture, and back when the pointer leaves."""
    chromium.open(report)
    x, y, first, second = chromium.run(
        """(() => {
            const svg = document.querySelector("svg.backing");
            const [cell, next] = [...svg.querySelectorAll("use")].filter((e) => e.textContent.includes("wrong") ||
                e.textContent.includes("outside the view"));
            next.scrollIntoView({block: "center"});
            const box = next.getBoundingClientRect();
            return [box.x + 7, box.y + 7, cell.textContent, next.textContent];
        })()"""
    )
    assert first == "backing element 3, [0, 3]: in a gap, read outside the view"
    assert second == "backing element 4, [0, 4]: in a gap, read outside the view"
    chromium.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    readout = "document.querySelector('.readout').textContent"
    assert chromium.run(readout) == second
    chromium.call("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert chromium.run(readout) == "backing element 3, [0, 3]: in a gap"


def test_a_screen_reader_gets_words(chromium: Browser, report: Path) -> None:
    """Headings, the matrix cell by cell, and what the picture shows."""
    chromium.open(report)
    tree = chromium.call("Accessibility.getFullAXTree")["nodes"]
    said = [
        (node["role"]["value"], node.get("name", {}).get("value", "").strip())
        for node in tree
        if not node.get("ignored")
    ]
    roles = {role for role, _ in said}
    assert {"banner", "main", "navigation", "heading", "table", "rowheader", "columnheader", "article"} <= roles
    assert ("columnheader", "narrowed") in said
    assert ("cell", "finding") in said
    assert ("heading", "ERROR out-of-view-read · block_table · kernel _gather_kernel") in said
    pictures = [name for role, name in said if role == "image"]
    assert "block_table in its backing. The first wrong element: backing element 3, [0, 3]: in a gap" in pictures
    assert len([name for role, name in said if role == "button" and name.startswith("Copy the replay")]) == 4
    assert "status" in roles


def test_printed(chromium: Browser, report: Path) -> None:
    """On white, also where the screen is dark; nothing is hidden in a scroller, and there are no buttons."""
    chromium.open(report, 700, prefers_color_scheme="dark")
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    chromium.call("Emulation.setEmulatedMedia", media="print", features=features)
    assert chromium.run("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert chromium.run(f"getComputedStyle({COPY}).display") == "none"
    scrollers, pictures = (f"[...document.querySelectorAll('{name}')]" for name in (".scroll", "svg.backing"))
    assert chromium.run(f"{scrollers}.every((e) => getComputedStyle(e).overflowX == 'visible')")
    assert chromium.run(f"{pictures}.every((e) => e.getBoundingClientRect().right <= 700)")
    assert len(chromium.call("Page.printToPDF")["data"]) > 10_000
    chromium.call("Emulation.setEmulatedMedia", media="", features=[])


def test_without_scripts(chromium: Browser, report: Path) -> None:
    """All is readable; the button, which could do nothing, is not shown."""
    chromium.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        chromium.open(report)
        assert chromium.run(f"getComputedStyle({COPY}).display") == "none"
        assert chromium.run("document.querySelector('.readout').textContent") == "backing element 3, [0, 3]: in a gap"
    finally:
        chromium.call("Emulation.setScriptExecutionDisabled", value=False)
