"""One target's turn: judging cases, and keeping account of what they showed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from kcheck.backend_spec import BackendSpec
from kcheck.case import Case
from kcheck.client import Client
from kcheck.document import case_text
from kcheck.engine.compiles import CompileCount
from kcheck.engine.known import Ledger, recognise
from kcheck.engine.settings import Progress, Settings
from kcheck.events import CaseDone, CaseVerdict, Cell, Discovery, Event, Phase
from kcheck.findings import Finding
from kcheck.join import mark
from kcheck.layout import LayoutKind
from kcheck.loader import LoadedTarget
from kcheck.protocol import Judgement
from kcheck.store import Store
from kcheck.weight import is_dense, weight

Judged = tuple[Case, Judgement]
T = TypeVar("T", bound=str | None)
# What a case shows of all its layouts. A finding is of one; with it in the way nothing is known of the others.
_SHOWN = {CaseVerdict.MATCH: Cell.MATCH, CaseVerdict.FINDINGS: Cell.COULD_NOT_CHECK}
MOST_TEXTS = 1000  # that are told apart: a message may quote a value that differs in each case
EARLY_CHARACTERS = 1 << 16  # of a case that is sent while another one runs


class Stop(BaseException):
    """The budget is used up, or the user stopped the run. A BaseException, so that Hypothesis lets it through."""


@dataclass(slots=True)
class Bug:
    """Everything seen of one fingerprint.

    Attributes:
        finding: As the best case shows it.
        case: The best case: the smallest with the gravest severity.
        kinds: Layout kinds of the argument, over all cases.
        seen: Cases that showed it.
    """

    finding: Finding
    case: Case
    kinds: set[LayoutKind] = field(default_factory=set)
    seen: int = 0


class Turn:
    """One target's turn.

    Args:
        one: The target.
        client: The workers.
        store: Where cases and findings are kept.
        settings: Budgets.
        emit: Where events go.
        stopped: Whether the user stopped the run.
    """

    def __init__(
        self,
        one: LoadedTarget,
        client: Client,
        store: Store,
        settings: Settings,
        emit: Callable[[Event], None],
        stopped: Callable[[], bool],
    ) -> None:
        self.target, self.spec, self.title = one.target, one.spec, one.title
        self.settings, self.emit = settings, emit
        self.client, self.store, self.stopped = client, store, stopped
        self.phase = Phase.SWEEP
        self.began = time.monotonic()
        self.deadline = self.began + settings.max_time
        self.counts: Counter[CaseVerdict] = Counter()
        self.launches: Counter[str] = Counter()
        self.compiles = CompileCount()
        self.rejections: Counter[str] = Counter()
        self.unchecked: Counter[str] = Counter()
        self.constants: Counter[str | None] = Counter()
        self.exempt = 0
        self.bugs: dict[str, Bug] = {}
        self.discoveries: dict[str, Discovery] = {}
        self.symptoms: dict[str, str] = {}  # fingerprint → argument whose layout causes it, by a bug that is known
        self.ledger = Ledger(settings.known.get(one.spec, ()))
        self.related: dict[str, list[Finding]] = {}  # fingerprint of a discovery → its symptoms
        self.matrix: dict[str, dict[LayoutKind, Cell]] = {}
        self.before: Progress | None = None  # of an earlier run, which this turn takes up
        self.swept = (0, 0)  # steps of the sweep that ran, and that there were to run
        self.seed = settings.random_seed
        self.partial: dict[str, str] = {}
        self.sequential: dict[str, str] = {}
        self.strided_accepted: set[str] = set()
        self.strided_declined: dict[str, str] = {}
        self.drawn = 0
        self._judgements: dict[str, Judgement] = {}
        self._slowest = 0.0  # seconds of a case that matched
        self._scouted: tuple[Case, float] | None = None  # with a worker, and when it was handed over
        self._waiting = False  # which of two files holds the case handed over last

    def start(self) -> None:
        """Begin to count the time; loading the target is over."""
        self.began = time.monotonic()
        self.deadline = self.began + self.settings.max_time

    @property
    def first_step(self) -> int:
        """Where to begin in the sweep: an earlier run did the rest."""
        return self.before.swept if self.before is not None else 0

    @property
    def first_draw(self) -> int:
        """Random cases that an earlier run drew."""
        return self.before.drawn if self.before is not None else 0

    def forget(self) -> None:
        """Forget the judgements of cases that will not be drawn again: a night has millions."""
        kept = {entry.case.key for entry in self.ledger.entries.values()}
        self._judgements = {key: judgement for key, judgement in self._judgements.items() if key in kept}

    @property
    def patience(self) -> float:
        """Seconds after which a case that never ends can be told from a slow one of this target."""
        return max(1.0, 20 * (self._slowest or 1.0))

    def judge(self, case: Case) -> Judgement:
        """Have a case judged, once; count it and report it.

        Raises:
            Stop: The turn is over.
        """
        if self.phase is Phase.RANDOM:
            self.drawn += 1
        known = self._judgements.get(case.key)
        if known is not None:
            return known
        self.check_time()
        if self._is_left_out(case):
            return self._judgements[case.key]
        began = time.perf_counter()
        self.store.running(self.spec, case)
        judgement = self.client.judge(self.spec, case)
        self._account(case, judgement, time.perf_counter() - began)
        return judgement

    def look(self, case: Case) -> Judgement:
        """What a case shows; it is not counted, for it may be another shard's."""
        return self._judgements.get(case.key) or self.client.judge(self.spec, case)

    def scout(self, case: Case) -> Judged | None:
        """Hand a case to a worker and go on, so that the next one is drawn while this one runs.

        Returns:
            What became of the case handed over before, if it has not been told yet.

        Raises:
            Stop: The turn is over.
        """
        self.drawn += 1
        if case.key in self._judgements or (self._scouted is not None and self._scouted[0] == case):
            return None
        if self._is_left_out(case):
            return None
        self.check_time()
        # A long one waits for its turn: were both sides to send more than a socket holds, neither would read.
        early = len(case_text(case)) < EARLY_CHARACTERS
        told = None if early else self.settle()
        before, self._scouted = self._scouted, (case, time.perf_counter())
        self._waiting = not self._waiting
        self.store.running(self.spec, case, waiting=self._waiting)
        self.client.begin(self.spec, case)
        return told if before is None else self._answer(*before)

    def settle(self) -> Judged | None:
        """Wait for the case handed over last; tell what became of it, if there is one."""
        if self._scouted is None:
            return None
        before, self._scouted = self._scouted, None
        return self._answer(*before)

    def _answer(self, case: Case, began: float) -> Judged:
        judgement = self.client.judge(self.spec, case)
        self._account(case, judgement, time.perf_counter() - began)
        return case, judgement

    def _account(self, case: Case, judgement: Judgement, seconds: float) -> None:
        """Keep, count and report what became of a case.

        Raises:
            Stop: The user stopped the run meanwhile, so that the judgement means nothing.
        """
        if self.stopped():
            raise Stop
        self._judgements[case.key] = judgement
        self._count(case, judgement)
        if judgement.verdict is CaseVerdict.MATCH:
            self._slowest = max(self._slowest, seconds)
        self.emit(CaseDone(self.title, self.phase, judgement.verdict, seconds, case, judgement.reason))

    def _is_left_out(self, case: Case) -> bool:
        """Whether a case, not judged so far, must not be launched: it holds the case of a known crash."""
        hazard = self.ledger.hazard_in(case)
        if hazard:
            self.ledger.left_out[hazard] += 1
            self._judgements[case.key] = Judgement(CaseVerdict.COULD_NOT_CHECK)
        return bool(hazard)

    def check_time(self) -> None:
        """End the turn when its time is up.

        Raises:
            Stop: It is.
        """
        if self.stopped() or time.monotonic() > self.deadline:
            raise Stop

    def fingerprint(self, finding: Finding) -> str:
        """Identity of a finding of this target."""
        return finding.fingerprint(self.target.name)

    def showing(self, judgement: Judgement, fingerprint: str, rank: int) -> Finding | None:
        """The finding of that fingerprint in a judgement, at least as grave as `rank`."""
        for finding in judgement.findings:
            if finding.severity.rank <= rank and self.fingerprint(finding) == fingerprint:
                return finding
        return None

    def news(self, case: Case, judgement: Judgement) -> list[Finding]:
        """Findings that nothing known covers, gravest first."""
        return [finding for finding in judgement.findings if self.is_news(case, finding)]

    def is_news(self, case: Case, finding: Finding) -> bool:
        """Whether a finding is neither discovered (at this severity) nor a known symptom in this case."""
        fingerprint = self.fingerprint(finding)
        cause = case.views.get(self.symptoms.get(fingerprint, ""))
        if cause is not None and not is_dense(cause):
            return False
        known = self.discoveries.get(fingerprint)
        return known is None or finding.severity.rank < known.finding.severity.rank

    def _count(self, case: Case, judgement: Judgement) -> None:
        self.counts[judgement.verdict] += 1
        self.launches.update(judgement.launches)
        self.partial.update(judgement.partial)
        self.sequential.update(judgement.sequential)
        self.compiles.update(judgement.compiles)
        self.exempt += judgement.exempt
        if judgement.verdict is CaseVerdict.REJECTED:
            _tally(self.rejections, judgement.reason)
        elif judgement.reason:
            _tally(self.unchecked, judgement.reason)
        if judgement.constant != "":
            _tally(self.constants, judgement.constant)
        self._note_strided(case, judgement)
        self.note_bugs(case, judgement)
        if judgement.verdict in _SHOWN:
            for name, view in case.views.items():
                self.mark(name, view.kinds, _SHOWN[judgement.verdict])

    def _note_strided(self, case: Case, judgement: Judgement) -> None:
        """Which arguments were accepted, and which declined, in a layout that is not contiguous."""
        strided = [name for name, view in case.views.items() if not view.layout.is_contiguous]
        if judgement.verdict in (CaseVerdict.MATCH, CaseVerdict.FINDINGS):
            self.strided_accepted.update(strided)
        elif judgement.layout_rejected:
            self.strided_declined.update(dict.fromkeys(strided, judgement.reason))

    def note_bugs(self, case: Case, judgement: Judgement) -> None:
        """Enter the findings of a case."""
        for finding in judgement.findings:
            self._note_bug(case, finding)
            recognise(self, case, finding)

    def _note_bug(self, case: Case, finding: Finding) -> None:
        bug = self.bugs.setdefault(self.fingerprint(finding), Bug(finding, case))
        bug.seen += 1
        view = case.views.get(finding.argument)
        if view is not None and len(view.kinds) == 1:  # of several kinds any one may be to blame
            bug.kinds |= view.kinds
        if (finding.severity.rank, weight(case)) < (bug.finding.severity.rank, weight(bug.case)):
            bug.finding, bug.case = finding, case

    def discovery(self, finding: Finding, case: Case) -> Discovery:
        """A finding as the reports get it, without what attribution adds."""
        view = case.views.get(finding.argument)
        backend = BackendSpec.parse(self.client.backend)
        return Discovery(
            target=self.target.name,
            spec=self.spec,
            finding=finding,
            fingerprint=self.fingerprint(finding),
            case=case,
            layout_kinds=tuple(sorted(view.kinds)) if view is not None else (),
            directory=self.store.unusual,
            options=backend.options,
            tool=backend.tool,
        )

    def verdict_of(self, case: Case) -> CaseVerdict | None:
        """Verdict of a case, None if it was not judged."""
        judgement = self._judgements.get(case.key)
        return None if judgement is None else judgement.verdict

    def mark(self, argument: str, kinds: Iterable[LayoutKind], cell: Cell) -> None:
        """Enter a result into the layout matrix; what weighs more stays."""
        mark(self.matrix.setdefault(argument, {}), dict.fromkeys(kinds, cell))


def _tally(counts: Counter[T], text: T) -> None:
    if text in counts or len(counts) < MOST_TEXTS:
        counts[text] += 1
