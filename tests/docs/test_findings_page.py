"""docs/findings.md: every kind has a section, its wrong line is found as this kind, and its right line is silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcheck import loader
from kcheck.client import Client
from kcheck.engine import choose
from kcheck.events import CaseVerdict
from kcheck.findings import Kind, Severity
from kcheck.loader import LoadedTarget
from kcheck.plan import Plan
from kcheck.reports.kinds import HELP

if TYPE_CHECKING:
    from tests.docs.conftest import Block

    BlocksOf = Callable[[str], list[Block]]

PAGE = "docs/findings.md"
TEXT = (Path(__file__).parents[2] / PAGE).read_text()
KERNELS = Path(__file__).parent / "kernels" / "findings.py"
ON_A_GPU = {
    Kind.MISALIGNED_ACCESS,
    Kind.SHARED_RACE,
    Kind.BARRIER_DIVERGENCE,
    Kind.GRAPH_VARIANCE,
    Kind.API_ERROR,
    Kind.LEAK,
}
SHOWN = [kind for kind in Kind if kind not in ON_A_GPU]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with Client("interpret", tmp_path_factory.mktemp("docs") / "worker.log", case_timeout=1.0) as started:
        yield started


@pytest.fixture(scope="module")
def versions(
    blocks_of: BlocksOf, client: Client, tmp_path_factory: pytest.TempPathFactory
) -> dict[bool, dict[str, LoadedTarget]]:
    """Targets by name, with the wrong lines (False) and with the right ones (True)."""
    right = KERNELS.read_text()
    for block in blocks_of(PAGE):
        if block.reason or block.language != "diff":
            continue
        old, new = (
            "".join(f"{line[1:]}\n" for line in block.text.splitlines() if line.startswith(sign)) for sign in "-+"
        )
        assert right.count(old) == 1, f"{block.place}: not once in {KERNELS.name}: {old}"
        right = right.replace(old, new)
    found = {}
    for fixed, text in ((False, KERNELS.read_text()), (True, right)):
        path = tmp_path_factory.mktemp("kernels") / f"kcheck_{'right' if fixed else 'wrong'}.py"
        path.write_text(text)
        found[fixed] = {one.target.name: one for one in loader.load(str(path))}
        for one in found[fixed].values():
            client.load(one.spec)
    return found


def test_every_kind_has_a_section_with_what_it_means_and_a_diff(blocks_of: BlocksOf) -> None:
    sections = [part.partition("\n") for part in TEXT.split("\n## ")[1:]]
    assert [title for title, _, _ in sections] == [str(kind) for kind in Kind]
    for title, _, body in sections:
        assert HELP[Kind(title)].meaning in " ".join(body.split()), title
        assert body.count("**Cause.**") == body.count("**Cure.**") == 1, title
    diffs = [block for block in blocks_of(PAGE) if block.language == "diff"]
    assert [block.section for block in diffs] == [str(kind) for kind in Kind]
    assert {block.section for block in diffs if block.reason} == ON_A_GPU
    assert all(f"| [`{kind}`](#{kind}) |" in TEXT for kind in Kind)


@pytest.mark.parametrize("kind", SHOWN)
def test_the_wrong_line_is_found(kind: Kind, client: Client, versions: dict[bool, dict[str, LoadedTarget]]) -> None:
    one = versions[False][kind.replace("-", "_")]
    kinds = set()
    for case in choose.boundary_cases(one.target, Plan()):
        kinds |= {f.kind for f in client.judge(one.spec, case).findings if f.severity is Severity.ERROR}
        if kind in kinds:
            return
    pytest.fail(f"not found; found were {sorted(kinds)}")


@pytest.mark.parametrize("kind", SHOWN)
def test_the_right_line_is_silent(kind: Kind, client: Client, versions: dict[bool, dict[str, LoadedTarget]]) -> None:
    one = versions[True][kind.replace("-", "_")]
    verdicts = set()
    for case in choose.boundary_cases(one.target, Plan()):
        judgement = client.judge(one.spec, case)
        assert not judgement.findings, [finding.message for finding in judgement.findings]
        verdicts.add(judgement.verdict)
    assert verdicts == {CaseVerdict.MATCH}
