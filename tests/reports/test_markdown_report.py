"""The Markdown report, as a reader of it sees it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from kcheck.events import CaseVerdict, Discovery, Gone, TargetResult
from kcheck.reports.markdown_report import fitted, render_markdown
from kcheck.reports.markdown_text import code, fence, link, prose
from kcheck.reports.record import RunRecord


def shown(markdown: str) -> str:
    """The words that a reader of a paragraph sees, without the invisible ones."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parseInline(markdown)
    return "".join(child.content for token in tokens for child in token.children or ()).replace("\u200b", "")


def test_verdicts(record: RunRecord) -> None:
    """A heading with the sum, and a line for every target."""
    lines = render_markdown(record).splitlines()
    assert lines[0] == "## kcheck: 2 findings, 1 could not check"
    assert lines[2] == "kcheck 0.1.0, triton 3.7.1, torch 2.13.0, backend interpret, seed 42"
    assert lines[4:8] == [
        "| | target | verdict | cases | time |",
        "| --- | --- | --- | --- | ---: |",
        "| ✗ | `gather` | 2 findings | 1,425 (1,380 match, 30 rejected, 15 with findings) | 14.2 s |",
        "| ? | `scatter` | could not check | 80 (80 match) | 1.2 s |",
    ]
    assert "- `scatter`: \\_scatter\\_kernel never launched: the result proves nothing about it." in lines


def test_a_finding(record: RunRecord) -> None:
    """Where, layout as code, picture, first wrong element, culprit, replay command."""
    text = render_markdown(record)
    for part in (
        "### ERROR out-of-view-read · block\\_table · kernel \\_gather\\_kernel · target `gather`\n",
        "\n`mylib/gather.py:6, in _gather_kernel`\n",
        "> 6 │ page = tl.load(table + request * width + position[None, :] // 4, mask=mask)  # width is shape[-1]\n",
        "- **argument:** block\\_table: index, int32, shape (2, 3), strides (16, 1): narrowed\n",
        "- **first:** block\\_table\\[0, 3\\], by program (1, 0, 0)\n",
        "- **in memory:** backing element 3, \\[0, 3\\]: in a gap\n",
        "\n[0, :]  ■ ■ ■ X x x · · · · · · · · · ·   block_table[0, :]\n",
        "```python\nblock_table = torch.empty((2, 16), dtype=torch.int32)[:, :3]\nout = ",
        "\nblock_size = 4\nscale = 0.5\ndtype = torch.bfloat16\n```\n",
        "```sh\nkcheck replay 00494939db6f --target kcheck_gather.py::gather\n```\n",
    ):
        assert part in text


def test_wrong_values_are_a_table(record: RunRecord) -> None:
    """Not finite ones too."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(render_markdown(record))
    cells = [token.content for token in tokens if token.type == "inline"]
    at = cells.index("index")
    assert [shown(cell) for cell in cells[at : at + 12]] == [
        *("index", "actual", "expected"),
        *("[1, 0]", "0", "-0.25"),
        *("[1, 1]", "0.5", "-0.25"),
        *("[1, 2]", "1", "nan"),
    ]


def test_known_and_gone(record: RunRecord, wild_read: Discovery) -> None:
    """In short, with their issues; an address that is no web address is no link."""
    issue = "https://github.com/o/r/issues/1"
    found = (replace(wild_read, known=issue), replace(wild_read, known="javascript:alert(1)"))
    record.results = (replace(record.results[0], discoveries=found, gone=(Gone("0" * 12, issue, "it is gone"),)),)
    record.targets = record.targets[:1]
    text = render_markdown(record)
    assert text.startswith("## kcheck: 2 known, 1 gone, no new findings\n")
    assert "| ✗ | `gather` | 2 known, 1 gone |" in text
    assert f"- `gather`: it is gone [github.com/o/r/issues/1](<{issue}>)\n" in text
    assert f": [github.com/o/r/issues/1](<{issue}>), `kcheck replay 00494939db6f" in text
    assert ": `javascript:alert(1)`, `kcheck" in text
    assert "### ERROR" not in text


@pytest.mark.parametrize(
    ("result", "heading", "row"),
    [
        (TargetResult("t", CaseVerdict.MATCH), "no findings", "| ✓ | `t` | match |"),
        (
            TargetResult("t", CaseVerdict.COULD_NOT_CHECK),
            "1 could not check, no findings",
            "| ? | `t` | could not check |",
        ),
        (
            TargetResult("t", CaseVerdict.COULD_NOT_CHECK, ("why",), allowed=True),
            "1 skipped, no findings",
            "| ? | `t` | could not check, skipped by --allow-skip |",
        ),
    ],
)
def test_runs_without_findings(result: TargetResult, heading: str, row: str) -> None:
    """Only a match has the sign of one."""
    text = render_markdown(RunRecord("cuda", 1, {}, ("t",), (result,), False, 1.0))
    assert text.startswith(f"## kcheck: {heading}\n")
    assert row in text
    assert ("✓" in text) == (result.verdict is CaseVerdict.MATCH)


def test_a_stopped_run_says_so(partial: RunRecord) -> None:
    """And names the target that had no turn."""
    text = render_markdown(partial)
    assert text.startswith("## kcheck: interrupted, 2 findings, 1 could not check\n")
    assert "- `scatter`: the run stopped before this target had its turn" in text


def test_it_fits_into_a_comment(record: RunRecord, wild_read: Discovery) -> None:
    """GitHub takes 65,536 characters."""
    record.results = (replace(record.results[0], discoveries=(wild_read,) * 200), record.results[1])
    text = render_markdown(record)
    assert 60_000 < len(text.encode()) <= 65_000
    assert text.splitlines()[-1].endswith("sections left out for want of room. The other reports have them all.*")
    assert text.count("```") % 2 == 0


def test_a_section_that_does_not_fit_does_not_keep_out_the_next() -> None:
    """The first one is always there."""
    assert fitted(["a" * 500, "b" * 500, "c"], 710) == f"{'a' * 500}\n\nc\n\n" + (
        "*1 section left out for want of room. The other reports have them all.*\n"
    )
    assert fitted(["ü" * 500], 10) == f"{'ü' * 500}\n"


@pytest.mark.parametrize(
    "text",
    ["a_b_c *d* [e](f) `g`", "1. x", "- x", "-", "0.5", "-0.25", "# h", "a & b < c", "x~~y~~ | $z$", "p^2 {q} !r"],
)
def test_prose_reads_as_it_was_written(text: str) -> None:
    """Whatever Markdown would make of it."""
    assert shown(prose(text)) == text


def test_pieces() -> None:
    """Fences and code grow around backticks; an address is encoded."""
    assert code("a`b") == "``a`b``"
    assert code("`") == "`` ` ``"
    assert code("a|b", cell=True) == r"`a\|b`"
    assert fence("```\nx  ") == "````text\n```\nx\n````"
    assert link("http://h/ <>\\") == "[h/ &lt;&gt;\\\\](<http://h/%20%3C%3E%5C>)"
