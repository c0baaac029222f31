"""What a target's verdict without findings rests on: facts that can be added up over the parts of a run.

A shard sees a part. Facts add up, sentences do not: that a kernel never launched is said of the whole run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

WEAK_ORACLE_CASES = 5  # constant results in fewer cases may be chance
MOST_REASONS = 3  # of unchecked cases
MOST_CAUSES = 3  # of compiles, told for each kernel


@dataclass(frozen=True, slots=True)
class Compiled:
    """Specialisations of one kernel.

    Attributes:
        fresh: Made.
        cached: Taken from the disk cache.
        seconds: Of all.
        causes: What made another one necessary → times.
    """

    fresh: int = 0
    cached: int = 0
    seconds: float = 0.0
    causes: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Compiled) -> Compiled:
        return Compiled(
            self.fresh + other.fresh,
            self.cached + other.cached,
            self.seconds + other.seconds,
            dict(Counter(self.causes) + Counter(other.causes)),
        )


K = TypeVar("K")
V = TypeVar("V", int, Compiled)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts of a target's turn, or of the turns that several parts of a run gave it.

    Attributes:
        shards: Turns that are summed up here.
        failures: Why a turn could not go on, a sentence each.
        interrupted: The user stopped one.
        settled: Fingerprint of a finding of the baseline that could not be checked → why.
        kernels: Kernels that must launch.
        exempt: Cases that were judged and have empty outputs: that no kernel launched means nothing.
        rejections: Reason → cases that the target rejected.
        unchecked: Reason → cases that could not be checked.
        constants: Value of every element of the oracle's results → cases.
        varied: Cases in which the oracle's results are not all one value.
        accepted: Arguments that were accepted in a layout that is not contiguous.
        declined: Argument that was declined in such a layout → why.
        left_out: Known crash, with its issue → cases that were not launched since they hold its case.
        swept: Cases of the sweep that ran, and that were planned.
        kernel_notes: Kernel, and what the note is about → note.
        unseen: Fingerprint → note: the baseline lists it, and no case showed it.
        known_notes: Further notes about the baseline.
        compiles: By kernel.
    """

    shards: int = 1
    failures: tuple[str, ...] = ()
    interrupted: bool = False
    settled: Mapping[str, str] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()
    exempt: int = 0
    rejections: Mapping[str, int] = field(default_factory=dict)
    unchecked: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    varied: int = 0
    accepted: tuple[str, ...] = ()
    declined: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    swept: tuple[int, int] = (0, 0)
    kernel_notes: Mapping[str, str] = field(default_factory=dict)
    unseen: Mapping[str, str] = field(default_factory=dict)
    known_notes: tuple[str, ...] = ()
    compiles: Mapping[str, Compiled] = field(default_factory=dict)

    @property
    def contiguous_only(self) -> tuple[str, ...]:
        """Arguments of which no layout but contiguous ones was accepted."""
        return tuple(name for name in self.declined if name not in self.accepted)

    def reasons(self, matches: int, judged: int, ran: int, launches: Mapping[str, int]) -> tuple[str, ...]:
        """Why the target counts as not checked, a sentence each.

        Args:
            matches: Cases that matched.
            judged: Cases that matched or have findings.
            ran: All cases.
            launches: Launches by kernel.
        """
        if self.failures:
            return self.failures
        reasons = ["the run was interrupted"] if self.interrupted else [*self.settled.values()]
        reasons += [f"{reason} ({_cases(count)})" for reason, count in _most(self.unchecked, MOST_REASONS)]
        if not self.interrupted or matches:
            reasons += self._unproven(judged, ran, launches)
        return tuple(reasons)

    def _unproven(self, judged: int, ran: int, launches: Mapping[str, int]) -> Iterator[str]:
        """What a run without findings does not prove."""
        if not ran:
            left_out = sum(self.left_out.values())
            why = f": {_cases(left_out)} hold the case of a crash that is known from the baseline" if left_out else ""
            yield f"no case ran{why}"
            return
        if not judged:
            for quote, times in _most(self.rejections, 1):
                yield f"every case was rejected: {quote} ({_cases(times)})"
            return
        if not self.interrupted:
            for name in self.contiguous_only:
                meant = "if so meant, draw it with kinds=ks.DENSE"
                yield f"no layout of {name} but contiguous ones was accepted: {self.declined[name]}; {meant}"
        if judged > self.exempt:
            for name in self.kernels or (("",) if not launches else ()):
                if not launches.get(name):
                    what = f"kernel {name} never launched" if name else "no kernel ever launched"
                    yield f"{what}, so the result proves nothing about it"
        if len(self.constants) == 1 and not self.varied:
            ((value, count),) = self.constants.items()
            if count >= WEAK_ORACLE_CASES:
                yield f"the oracle is weak: every result is {value} in all {_cases(count)}"

    def notes(self) -> Iterator[str]:
        """What the reader should know although nothing failed, a sentence each."""
        done, planned = self.swept
        if done < planned and not self.failures and not self.interrupted:
            yield f"the sweep ran {done} of {planned} cases; give it more --max-time"
        yield from self.kernel_notes.values()
        for crash, count in self.left_out.items():
            what = "case was not launched: it holds" if count == 1 else "cases were not launched: they hold"
            yield f"{count:,} {what} the case of {crash}"
        yield from self.known_notes
        yield from self.unseen.values()
        for name, made in self.compiles.items():
            total = made.fresh + made.cached
            kinds = f"{total} specialisation{'s' if total != 1 else ''}"
            kinds += f" in {self.shards} parts of the run" if self.shards > 1 else ""
            text = f"kernel {name} has {kinds}: {made.fresh} compiled, {made.cached} from the disk cache, "
            text += f"{made.seconds:.1f} s in all"
            causes = " | ".join(cause for cause, _ in _most(made.causes, MOST_CAUSES))
            yield text + (f"; made anew for {causes}" if causes else "")


def joined(parts: Sequence[Evidence]) -> Evidence:
    """The evidence of several parts as that of one run. Joining in groups, in their order, gives the same."""
    return Evidence(
        shards=sum(part.shards for part in parts),
        failures=_each_once(part.failures for part in parts),
        interrupted=any(part.interrupted for part in parts),
        settled=_in_all([part.settled for part in parts]),
        kernels=_each_once(part.kernels for part in parts),
        exempt=sum(part.exempt for part in parts),
        rejections=added(part.rejections for part in parts),
        unchecked=added(part.unchecked for part in parts),
        constants=added(part.constants for part in parts),
        varied=sum(part.varied for part in parts),
        accepted=tuple(sorted({name for part in parts for name in part.accepted})),
        declined=_first(part.declined for part in parts),
        left_out=added(part.left_out for part in parts),
        swept=(sum(part.swept[0] for part in parts), sum(part.swept[1] for part in parts)),
        kernel_notes=_first(part.kernel_notes for part in parts),
        unseen=_in_all([part.unseen for part in parts]),
        known_notes=_each_once(part.known_notes for part in parts),
        compiles=added(part.compiles for part in parts),
    )


def added(parts: Iterable[Mapping[K, V]]) -> dict[K, V]:
    """Counts of several parts, added up."""
    total: dict[K, V] = {}
    for part in parts:
        for key, count in part.items():
            total[key] = total[key] + count if key in total else count
    return total


def _in_all(parts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What no part knows better."""
    return {key: text for key, text in parts[0].items() if all(key in part for part in parts)}


def _first(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    told: dict[str, str] = {}
    for part in parts:
        told |= {key: text for key, text in part.items() if key not in told}
    return told


def _each_once(parts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for part in parts for text in part))


def _most(counts: Mapping[str, int], number: int) -> list[tuple[str, int]]:
    """The most common ones; of equal ones the first in the alphabet, so that the order of parts does not matter."""
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:number]


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count:,} cases"
