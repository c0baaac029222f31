"""The JUnit report: a suite per target, a test case per check. Jenkins' junit-10.xsd is the dialect.

A check passes where the run could have found its kinds and did not. Kinds that one proof tells apart are one check:
whether a stray read stays in the backing may change from run to run. Kinds that only some runs look for (under
compute-sanitizer, with CUDA graphs) are there only when they are found: nothing passes that was not tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from kcheck.events import Discovery, TargetResult
from kcheck.findings import Kind
from kcheck.reports.console import render
from kcheck.reports.panel import FindingPanel
from kcheck.reports.record import RunRecord
from kcheck.reports.verdict import cases, conditions, could_not_check
from kcheck.reports.wording import cut, plain

_CHECKS = (  # of every case that `kcheck fuzz` judges, on any backend
    (Kind.OUT_OF_VIEW_READ, Kind.OUT_OF_BOUNDS_READ),
    (Kind.OUT_OF_VIEW_WRITE, Kind.OUT_OF_BOUNDS_WRITE),
    (Kind.VALUE_MISMATCH, Kind.LAYOUT_VARIANCE),
    (Kind.UNWRITTEN_OUTPUT,),
    (Kind.INPUT_MUTATED,),
    (Kind.UNINITIALIZED_READ,),
    (Kind.NONDETERMINISM,),
    (Kind.COMPILE_ERROR,),
    (Kind.DEVICE_ASSERT,),
    (Kind.TARGET_ERROR,),
    (Kind.CRASH,),
    (Kind.TIMEOUT,),
)
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WIDTH = 100  # columns of panels


def render_junit(record: RunRecord) -> str:
    """The report of a run as JUnit XML."""
    suites = [_suite(result, record) for result in record.outcomes()]
    root = Element("testsuites", name="kcheck", time=f"{record.seconds:.3f}")
    root.extend(suites)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(result: TargetResult, record: RunRecord) -> Element:
    suite = Element("testsuite", name=_text(result.name))
    properties = SubElement(suite, "properties")
    for name, value in [("seed", str(record.seed)), ("backend", record.backend), *record.versions.items()]:
        SubElement(properties, "property", name=_text(name), value=_text(value))
    suite.extend(_tests(result, record))
    tests = suite.findall("testcase")
    suite.set("tests", str(len(tests)))
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(test.find(tag) is not None for test in tests)))
    suite.set("time", f"{result.seconds:.3f}")
    SubElement(suite, "system-out").text = _text("\n".join(filter(None, (cases(result), *map(cut, result.notes)))))
    return suite


def _tests(result: TargetResult, record: RunRecord) -> Iterator[Element]:
    yield _checked(result)
    for kinds in _checks(result, record):
        yield _check(result, kinds, record)
    if result.gone:
        text = "\n".join(f"{cut(gone.message)} ({gone.issue})" for gone in result.gone)
        yield _outcome(_test(result, "baseline"), "failure", "gone", "the baseline lists what is gone", text)


def _checked(result: TargetResult) -> Element:
    """Whether the target could be checked at all. The target's time is this one's."""
    test = _test(result, "could be checked", result.seconds)
    if could_not_check(result):
        reasons = [cut(reason) for reason in result.reasons] or ["no reason is known"]
        kind, more = ("skipped", "--allow-skip: ") if result.allowed else ("error", "")
        _outcome(test, kind, "could-not-check", more + reasons[0], "\n".join(reasons))
    return test


def _checks(result: TargetResult, record: RunRecord) -> list[tuple[Kind, ...]]:
    """Checks that the run made, and those of what it found."""
    checks = [] if "compute-sanitizer" in record.versions else [*_CHECKS]
    for discovery in result.discoveries:
        kind = discovery.finding.kind
        if not any(kind in kinds for kinds in checks):
            checks.append(next((kinds for kinds in _CHECKS if kind in kinds), (kind,)))
    return checks


def _check(result: TargetResult, kinds: tuple[Kind, ...], record: RunRecord) -> Element:
    test = _test(result, " or ".join(kinds))
    found = [discovery for discovery in result.discoveries if discovery.finding.kind in kinds]
    fresh = [discovery for discovery in found if not discovery.known]
    text = f"{_panels(found)}{conditions(record)}"
    if fresh:
        more = f" (and {len(fresh) - 1} more)" if len(fresh) > 1 else ""
        finding = fresh[0].finding
        _outcome(test, "failure", finding.kind, f"{finding.severity}: {cut(finding.message)}{more}", text)
    elif found:
        links = ", ".join(dict.fromkeys(discovery.known for discovery in found))
        _outcome(test, "skipped", "known", f"known: {cut(links)}", text)
    elif could_not_check(result):
        _outcome(test, "skipped", "could-not-check", "not proven: the target could not be checked")
    elif causes := [discovery.finding for discovery in result.discoveries if _symptoms(discovery) & {*kinds}]:
        _outcome(test, "skipped", "symptom", f"not proven: it happened, because of the {causes[0].kind}")
    return test


def _symptoms(discovery: Discovery) -> set[Kind]:
    """Kinds that were seen and are not counted on their own."""
    wrong = {Kind.VALUE_MISMATCH} if discovery.finding.mismatch else set()
    return wrong | {related.kind for related in discovery.related}


def _panels(discoveries: Sequence[Discovery]) -> str:
    return "".join(f"{render(FindingPanel(discovery), _WIDTH)}\n" for discovery in discoveries)


def _test(result: TargetResult, name: str, seconds: float = 0.0) -> Element:
    return Element("testcase", classname=_text(result.name), name=name, time=f"{seconds:.3f}")


def _outcome(test: Element, tag: str, kind: str, message: str, text: str = "") -> Element:
    SubElement(test, tag, type=kind, message=_text(message)).text = _text(text) or None
    return test


def _text(text: str) -> str:
    """Text with what XML cannot hold, and what steers a terminal, spelled out."""
    return _NOT_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", plain(text))
