"""Text of the user, of torch and of the compiler is shown in every format and acts in none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from kcheck.case import Case, Tensor
from kcheck.events import CaseVerdict, Cell, Discovery, Gone, TargetResult
from kcheck.findings import Finding, Kind, Mismatch, SourceFrame
from kcheck.layout import Layout, LayoutKind
from kcheck.reports.github_report import render_github
from kcheck.reports.json_report import render_json
from kcheck.reports.junit_report import render_junit
from kcheck.reports.markdown_report import render_markdown
from kcheck.reports.record import RunRecord
from kcheck.reports.sarif_report import render_sarif

Render = Callable[[RunRecord], str]
RENDERERS = [render_json, render_junit, render_sarif, render_github, render_markdown]
HOSTILE = [
    "]]></failure><x a='\"&amp;&#0;",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x00\x08\x7f\x9b",
    "\udcff \ud800 \ufffe \uffff \u202e\u2066 \u2028",
    "a\r\n::error file=x::y\n##[error]z\n%0A::stop-commands::t",
    "<script>alert(1)</script><img src=x onerror=y><!-- ",
    "`x` ``y`` ```\n~~~ \\` | || @octocat a@b.example #1 GH-1 org/repo#2",
    "[a](https://evil.example) ![i](https://evil.example/i.png) <https://evil.example> www.evil.example",
    "# h1\n---\n- item\n1. item\n    code\n> quote\n[x]: https://evil.example",
    "{0} [](1) \\",
    "nan inf -inf",
    "",
    " ",
]


def record(text: str) -> RunRecord:
    """A run in which everything that the user may choose is this text."""
    infinite = Mismatch(
        text, 1, 2, (0,), float("inf"), float("nan"), float("-inf"), text, (((0,), float("nan"), 1e300),)
    )
    finding = Finding(
        Kind.OUT_OF_VIEW_READ,
        text,
        kernel=text,
        file=text,
        line=3,
        source=text,
        argument=text,
        parameter=text,
        index=(1,),
        landed=text,
        cells=(1,),
        chain=(SourceFrame(text, 2, text, text), SourceFrame(text, 3, text, text)),
        mismatch=infinite,
        notes=(text,),
    )
    case = Case(**{text: Tensor("float32", Layout.contiguous((2,))), f"{text}2": text, "number": float("nan")})
    related = (replace(finding, kind=Kind.VALUE_MISMATCH),)
    new = Discovery(text, f"{text}::{text}", finding, text, case, culprit=text, related=related, directory=text)
    results = (
        TargetResult(
            text,
            CaseVerdict.FINDINGS,
            (text, text),
            (text,),
            {CaseVerdict.MATCH: 1},
            1.0,
            {text: {LayoutKind.CONTIGUOUS: Cell.MATCH}},
            (new, replace(new, known=text or "x"), replace(new, known=f"https://a.example/{text}", tool=text)),
            {text: 1},
            (Gone(text, text, text),),
        ),
        TargetResult(text, CaseVerdict.COULD_NOT_CHECK, (text,), allowed=True),
    )
    return RunRecord("interpret", 1, {text: text, "kcheck": text}, (text, text, text), results, False, 2.0)


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_steers_a_terminal(render: Render, text: str) -> None:
    """No control or direction character, no half of a surrogate pair: all of it is UTF-8 and printable."""
    document = render(record(text))
    document.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", document)


@pytest.mark.parametrize("text", HOSTILE)
def test_xml(text: str) -> None:
    """A strict parser reads it, and finds what was put in, one element each."""
    root = ElementTree.fromstring(render_junit(record(text)))
    assert [suite.get("tests") for suite in root] == [str(len(suite.findall("testcase"))) for suite in root]
    assert not list(root.iter("x"))
    assert len(list(root.iter("failure"))) == 2


@pytest.mark.parametrize("text", HOSTILE)
def test_json_is_strict(text: str) -> None:
    """Neither NaN nor infinities, in both formats that are JSON."""
    for render in (render_json, render_sarif):
        json.loads(render(record(text)), parse_constant=lambda name: pytest.fail(name))


@pytest.mark.parametrize("text", HOSTILE)
def test_sarif_messages_have_no_links(text: str) -> None:
    """``[text](target)`` is one in SARIF."""
    (run,) = json.loads(render_sarif(record(text)))["runs"]
    messages = [result["message"]["text"] for result in run["results"]]
    messages += [said["message"]["text"] for said in run["invocations"][0]["toolExecutionNotifications"]]
    assert len(messages) == 3 + 6  # findings; three reasons, a target without a turn, what is gone, a note
    assert not any("](" in message for message in messages)


@pytest.mark.parametrize("text", HOSTILE)
def test_workflow_commands(text: str) -> None:
    """Every line is a command of ours, with the properties that we gave it."""
    for line in render_github(record(text)).split("\n")[:-1]:
        found = re.fullmatch(r"::(?:error|warning) ((?:[a-z]+=[^:,\r\n]*,?)+)::(.*)", line)
        assert found, line
        names = [given.partition("=")[0] for given in found[1].split(",")]
        assert names in (["file", "line", "title"], ["title"])
        assert not re.search("%(?!25|0A|0D|3A|2C)", line)


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown(text: str) -> None:
    """As GitHub's Markdown: our own headings, tables and issue links; no HTML, no image, nobody is mentioned."""
    document = render_markdown(record(text))
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(document)
    every = [child for token in tokens for child in (token, *(token.children or ()))]
    assert not [
        token for token in every if token.type in ("html_block", "html_inline", "image", "hr", "blockquote_open")
    ]
    assert not [token for token in tokens if token.type in ("code_block", "ordered_list_open", "lheading_open")]
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h2", "h3", "h3", "h3", "h3", "h3"]
    links = [str(token.attrs["href"]) for token in every if token.type == "link_open"]
    assert len(links) == 1
    assert links[0].startswith("https://a.example/")
    rows = [token for token in tokens if token.type == "tr_open"]
    cells = [token for token in tokens if token.type in ("td_open", "th_open")]
    assert len(cells) == 5 * 4 + 3 * 2  # verdicts of three targets, and one wrong value
    assert len(rows) == 4 + 2
    words = "".join(token.content for token in every if token.type == "text")
    assert not re.search(r"@[\w-]|#\d|https?://|www\.", words.replace("https://a.example", ""))


def test_code_in_markdown_shows_what_was_given() -> None:
    """Backticks and pipes come through, in a table too."""
    document = render_markdown(record("a`b``c|d"))
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(document)
    codes = {child.content for token in tokens for child in token.children or () if child.type == "code_inline"}
    assert "a`b``c|d" in codes


@pytest.mark.parametrize("render", RENDERERS[1:])
def test_a_message_of_ten_megabytes(render: Render) -> None:
    """A compiler's dump is cut, and the report says so; JSON alone has all of it."""
    huge = "0123456789" * 1_000_000
    run = record("name")
    (new, *_), (gone,) = run.results[0].discoveries, run.results[0].gone
    finding = replace(new.finding, message=huge, source=huge, notes=(huge,), landed=huge)
    found = (replace(new, finding=finding, related=(finding,)),)
    result = replace(
        run.results[0], reasons=(huge,), notes=(huge,), discoveries=found, gone=(replace(gone, message=huge),)
    )
    document = render(replace(run, results=(result,)))
    assert len(document) < 200_000
    assert "9,996,000 more characters" in document
