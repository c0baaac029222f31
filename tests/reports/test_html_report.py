"""The HTML report as a text: what is in it, what must not be, and that it is well-formed."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kcheck.case import Case, Role, Tensor
from kcheck.events import CaseVerdict, Cell, Discovery, Event, Gone, TargetResult
from kcheck.findings import Finding, Kind, Mismatch, SourceFrame
from kcheck.layout import Dim, Layout, LayoutKind
from kcheck.reports import open_reports
from kcheck.reports.html_report import render_html
from kcheck.reports.record import RunRecord

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"' onclick='a() {{ 7*7 }} --> \x1b[31m\0\u202e"
)
VOID = {"meta"}


class Page(HTMLParser):
    """A parsed report. Fails on tags that do not match.

    Attributes:
        elements: Name and attributes of every element.
        text: Text of the whole page, style and script left out, white space joined.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in ("dt", "td", "th"):
            self.words.append(" ")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script", "title"):
            self.words.append(data)

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]


def record_of(*results: TargetResult, interrupted: bool = False) -> RunRecord:
    versions = {"kcheck": "0.1.0", "torch": "2.13.0"}
    return RunRecord("interpret", 42, versions, tuple(r.name for r in results), results, interrupted, 15.5)


def test_everything_about_a_finding(results: tuple[TargetResult, ...], wild_read: Discovery) -> None:
    """What the issue asks for is there, as a reader sees it."""
    page = Page(render_html(record_of(*results)))
    for fact in (
        "2 findings",
        "1 could not check",
        "seed 42",
        "torch 2.13.0",
        "1,425: 1,380 match, 30 rejected, 15 with findings",
        "_scatter_kernel never launched",
        "error out-of-view-read · block_table · kernel _gather_kernel",
        "mylib/gather.py:6, in _gather_kernel",
        "▸ 6 page = tl.load(table + request * width",
        "block_table = torch.empty((2, 16), dtype=torch.int32)[:, :3]",
        "3 lanes in 1 program",
        "by program (1, 0, 0)",
        "backing element 3, [0, 3]: in a gap",
        "pool = torch.empty((4, 2, 4, 128), dtype=torch.bfloat16)[:, 0]",
        "block_size = 4, scale = 0.5, dtype = torch.bfloat16",
        "8 of 16 elements of out (50.0%) differ from the oracle",
        "with block_table made contiguous",
        wild_read.replay,
    ):
        assert fact in page.text
    assert re.search(r"\[1, 2\]\s*1\s*nan", page.text)


def test_the_matrix_says_each_cell_in_a_word(results: tuple[TargetResult, ...]) -> None:
    """Sign, word and colour; a kind that is missing was not tried."""
    html = render_html(record_of(results[0]))
    row = re.search(r'<tr><th scope="row"><span class="mono name">pool</span></th>(.*?)</tr>', html)
    assert row is not None
    words = re.findall(r'<span class="unseen">(.*?)</span>', row[1])
    by_kind = dict(zip(LayoutKind, words, strict=True))
    assert by_kind[LayoutKind.CONTIGUOUS] == "match"
    assert by_kind[LayoutKind.TRANSPOSED] == "rejected"
    assert by_kind[LayoutKind.FAR] == "could-not-check"
    assert by_kind[LayoutKind.EMPTY] == "not tried"
    assert "not judged: could not check, or another finding in the way" in html


def test_the_page_is_whole(results: tuple[TargetResult, ...]) -> None:
    """Ids are unique; links, labels and symbols lead somewhere; nothing is fetched."""
    html = render_html(record_of(*results))
    page = Page(html)
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    inner = {href.removeprefix("#") for href in page.attributes("href") if href.startswith("#")}
    assert inner | set(page.attributes("aria-labelledby")) | set(page.attributes("data-copies")) <= set(ids)
    assert page.attributes("src") == []
    assert "@import" not in html
    assert "url(" not in html


def test_the_policy_allows_this_style_and_this_script_only(results: tuple[TargetResult, ...]) -> None:
    """Nothing is loaded, nothing else runs, and no attribute needs an exception."""
    html = render_html(record_of(*results))
    page = Page(html)
    (policy,) = (attrs["content"] for _, attrs in page.elements if "http-equiv" in attrs)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not [name for _, attrs in page.elements for name in attrs if name == "style" or name.startswith("on")]


def hostile(value: Any) -> Any:
    """The same data with every text replaced."""
    if isinstance(value, Enum) or value is None or isinstance(value, (int, float, Case)):
        return value
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, tuple):
        return tuple(map(hostile, value))
    if isinstance(value, dict):
        return {hostile(key): hostile(item) for key, item in value.items()}
    assert is_dataclass(value)
    return replace(value, **{field.name: hostile(getattr(value, field.name)) for field in fields(value)})  # type: ignore[type-var]


def test_hostile_text_in_every_field(results: tuple[TargetResult, ...]) -> None:
    """It is text wherever it comes: no element, no attribute, no control character is made of it."""
    gather = replace(results[0], gone=(Gone("a", "b", "c"),), reasons=("d",))
    case = Case.of({HOSTILE: "a'b"}, {})
    found = tuple(replace(found, case=case, known=known) for found in gather.discoveries for known in ("", "e"))
    html = render_html(hostile(record_of(replace(gather, discoveries=found), results[1])))
    page = Page(html)
    assert {tag for tag, _ in page.elements}.isdisjoint({"img", "iframe", "object", "base"})
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert all(href.startswith("#") for href in page.attributes("href"))
    assert "{{ 7*7 }}" in page.text
    assert "\\x1b[31m\\x00\\u202e" in page.text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", html)


def test_hostile_names_of_arguments(wild_read: Discovery) -> None:
    """The names in pictures, in their titles and labels."""
    table = Tensor("int32", Layout((Dim(2), Dim(3, after=13))), role=Role.INDEX)
    case = Case(**{HOSTILE: table})
    finding = replace(wild_read.finding, argument=HOSTILE)
    found = replace(wild_read, case=case, finding=finding, culprit=HOSTILE)
    page = Page(render_html(record_of(TargetResult("t", CaseVerdict.FINDINGS, discoveries=(found,)))))
    assert any(tag == "use" for tag, _ in page.elements)
    assert "img" not in {tag for tag, _ in page.elements}
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]


def test_surrogates_and_long_texts(wild_read: Discovery) -> None:
    """The page is UTF-8, and a message of 10 MB does not make it big."""
    finding = replace(wild_read.finding, message="x" * 10_000_000, source="\ud800", file="\udcff.py")
    found = replace(wild_read, finding=finding)
    html = render_html(record_of(TargetResult("t", CaseVerdict.FINDINGS, discoveries=(found,))))
    assert len(html.encode("utf-8")) < 100_000
    assert "more characters" in html


MATCH = TargetResult("fine", CaseVerdict.MATCH, cases={CaseVerdict.MATCH: 8}, seconds=1.0)
UNCHECKED = TargetResult("x", CaseVerdict.COULD_NOT_CHECK, ("the kernel never launched.",))


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (record_of(MATCH), "match"),
        (record_of(MATCH, UNCHECKED), "unchecked"),
        (record_of(replace(MATCH, reasons=("an oracle is weak.",))), "unchecked"),
        (record_of(replace(UNCHECKED, allowed=True)), "unchecked"),
        (record_of(MATCH, interrupted=True), "unchecked"),
        (RunRecord(targets=("never had its turn",)), "unchecked"),
        (RunRecord(), "unchecked"),
        (record_of(replace(MATCH, gone=(Gone("f" * 12, "https://x.org/1", "It is gone."),))), "findings"),
    ],
)
def test_only_what_was_wholly_checked_looks_like_a_pass(record: RunRecord, state: str) -> None:
    """The sign of a pass is on the page only where it passed."""
    html = render_html(record)
    assert f'<header class="{state}">' in html
    head = html[html.index("<title>") : html.index("</title>")] + html[html.index("<h1>") : html.index("</h1>")]
    assert ("✓" in head) == (state == "match")


def test_the_reason_stands_by_the_target(results: tuple[TargetResult, ...]) -> None:
    """Under a heading of its own, in words."""
    html = render_html(record_of(results[1]))
    assert re.search(r'<div class="notice unchecked">\s*<h3>.*Could not check</h3>\s*<ul><li>_scatter_kernel', html)
    skipped = render_html(record_of(replace(results[1], allowed=True)))
    assert "Could not check, skipped by --allow-skip" in skipped


def test_known_findings_stand_apart(wild_read: Discovery, mismatch: Discovery) -> None:
    """Below the new ones, with the link; alone they are no new finding and no pass."""
    listed = replace(wild_read, known="https://github.com/a/b/issues/7")
    result = TargetResult("t", CaseVerdict.FINDINGS, discoveries=(listed, mismatch))
    html = render_html(record_of(result))
    divider = html.index("Known findings, listed in the baseline")
    assert html.index(f'<h3 id="{mismatch.fingerprint}"') < divider < html.index(f'<h3 id="{listed.fingerprint}"')
    assert '<a href="https://github.com/a/b/issues/7" rel="noreferrer noopener">' in html
    alone = render_html(record_of(replace(result, discoveries=(listed,))))
    assert '<header class="known">' in alone
    assert "no new findings" in Page(alone).text


@pytest.mark.parametrize(
    ("link", "is_link"),
    [
        ("https://github.com/a/b/issues/7", True),
        ("http://tracker/7", True),
        ("HTTPS://tracker/7", True),
        ("javascript:alert(1)", False),
        ("java\nscript:alert(1)", False),
        ("data:text/html,x", False),
        ("//evil.org", False),
        ("https:", False),
        ("https://[", False),
        ("https://a\x00b", False),
        ("PROJ-7", False),
    ],
)
def test_only_links_to_the_web_become_links(wild_read: Discovery, link: str, is_link: bool) -> None:
    """All others are shown as text."""
    result = TargetResult("t", CaseVerdict.FINDINGS, discoveries=(replace(wild_read, known=link),))
    page = Page(render_html(record_of(result)))
    assert (link in page.attributes("href")) == is_link
    assert len([href for href in page.attributes("href") if not href.startswith("#")]) == is_link
    assert f"Known: {link.splitlines()[0][:4]}" in page.text


def test_the_tool_that_showed_it(wild_read: Discovery) -> None:
    """A finding of compute-sanitizer."""
    found = replace(wild_read, tool="racecheck")
    text = Page(render_html(record_of(TargetResult("t", CaseVerdict.FINDINGS, discoveries=(found,))))).text
    assert "tool compute-sanitizer, racecheck" in text


def test_the_call_chain(wild_read: Discovery, source_file: Path) -> None:
    """The faulty line first, then who called it."""
    chain = (
        SourceFrame(str(source_file), 2, "_gather_kernel", source_file.read_text(encoding="utf-8").splitlines()[1]),
        SourceFrame(str(source_file), 6, "_load_page", wild_read.finding.source),
    )
    found = replace(wild_read, finding=replace(wild_read.finding, chain=chain))
    text = Page(render_html(record_of(TargetResult("t", CaseVerdict.FINDINGS, discoveries=(found,))))).text
    assert text.index("gather.py:6, in _load_page") < text.index("called from mylib/gather.py:2, in _gather_kernel")


@pytest.mark.parametrize("kind", list(Kind))
def test_a_finding_with_nothing_but_a_message(kind: Kind) -> None:
    """A crash names neither argument nor line."""
    found = Discovery("t", "t.py", Finding(kind, "It happened."), "abcdef012345", Case(n=1))
    text = Page(render_html(record_of(TargetResult("t", CaseVerdict.FINDINGS, discoveries=(found,))))).text
    assert "It happened." in text
    assert "n = 1" in text
    assert "kcheck replay abcdef012345 --target t.py" in text


def test_an_argument_without_memory() -> None:
    """There is nothing to draw, and that is said."""
    case = Case(x=Tensor("float32", Layout.contiguous((0, 4))))
    found = Discovery("t", "t.py", Finding(Kind.TARGET_ERROR, "It raised.", argument="x"), "abcdef012345", case)
    html = render_html(record_of(TargetResult("t", CaseVerdict.FINDINGS, discoveries=(found,))))
    assert "the backing has no elements" in html


def large(number: int) -> Discovery:
    """A finding with two pictures of the largest kind."""
    table = Layout((Dim(256), Dim(4096, before=4, after=8192)), offset=3)
    pool = Layout((Dim(300), Dim(70, step=2), Dim(64)), order=(2, 0, 1))
    case = Case(
        block_table=Tensor("int32", table, role=Role.INDEX),
        pool=Tensor("float16", pool),
        **{f"other_{i}": Tensor("float32", Layout((Dim(7), Dim(9, after=3)))) for i in range(5)},
    )
    examples = tuple(((255, 4095, i), 1.123456789e-30 * i, 2.0) for i in range(8))
    finding = Finding(
        Kind.OUT_OF_VIEW_WRITE,
        "decode_kernel writes block_table outside of its view.",
        kernel="decode_kernel",
        file="/a/long/path" * 20,
        line=1234,
        source="tl.store(table + " + "x * stride_x + " * 12 + "0)",
        argument="block_table",
        index=(0, 4096),
        cells=tuple(table.offset_of((3 * i, 4096 + 5 * i)) for i in range(64)),
        count=64,
        programs=2,
        mismatch=Mismatch("out", 123, 1 << 24, (1, 7), 3.5, -0.25, 1e-6, "oracle", examples),
    )
    return Discovery("t", "t.py::t", finding, f"{number:012x}", case, seen=2, culprit="pool")


def test_twenty_large_findings_stay_below_a_megabyte() -> None:
    """The pictures are windows."""
    result = TargetResult("t", CaseVerdict.FINDINGS, discoveries=tuple(map(large, range(20))))
    html = render_html(record_of(result))
    assert len(html.encode()) < 1_000_000
    assert html.count("<article") == 20


def test_contents_lead_to_a_hundred_findings(wild_read: Discovery) -> None:
    """Each is linked from the top by its fingerprint."""
    found = tuple(replace(wild_read, fingerprint=f"{i:012x}") for i in range(100))
    page = Page(render_html(record_of(TargetResult("t", CaseVerdict.FINDINGS, discoveries=found))))
    assert {f"#{i:012x}" for i in range(100)} <= set(page.attributes("href"))
    assert "100 findings" in page.text


def test_from_the_command_line(events: Sequence[Event], tmp_path: Path) -> None:
    """``--report html=PATH``; the same run gives the same bytes."""
    for name in ("a.html", "b.html"):
        with open_reports([f"html={tmp_path / name}"], progress=False) as reports:
            for event in events:
                reports.handle(event)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_every_cell_of_the_matrix_has_a_sign() -> None:
    """The enumeration may grow."""
    for cell in Cell:
        result = replace(MATCH, matrix={"x": {LayoutKind.FAR: cell}})
        assert f'<span class="unseen">{cell}</span>' in render_html(record_of(result))
