"""A run that was killed goes on where it was: what it had done is in a file of the ``.kcheck`` directory.

The file is data, and is not trusted: what it says is checked, and a run that it does not fit begins anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from kcheck import __version__
from kcheck.engine.settings import Earlier, Progress
from kcheck.errors import InvalidDocument, UsageError
from kcheck.events import Shard
from kcheck.json_node import Node, read_node
from kcheck.origin import is_user_code
from kcheck.reports.json_reader import read_discovery, read_target
from kcheck.reports.json_report import discovery_to_json, strict, target_to_json
from kcheck.store import Store, write_json

RESUME_SCHEMA = "kcheck.resume/1"
FOLDER = "resume"
MOST_STATES = 100  # of runs that nobody took up
Identity = Mapping[str, str]


class Journal:
    """The file of one run, or of one shard of it.

    Args:
        store: The ``.kcheck`` directory.
        identity: What makes the run this one, by name: targets, options, versions. See `sources` too.
        seed: Of the run.
        shard: Which part of a run it is.
    """

    def __init__(self, store: Store, identity: Identity, seed: int, shard: Shard | None = None) -> None:
        self._store, self._identity, self._seed = store, identity, seed
        self._path = _place(store, identity, shard)

    def note(self, state: Earlier) -> None:
        """Keep how far the run is, whole or not at all. That it cannot be kept does not stop the run."""
        data = {
            "schema": RESUME_SCHEMA,
            "identity": dict(self._identity),
            "seed": self._seed,
            "case": self._store.case_note.name,
            "seconds": state.seconds,
            "results": [target_to_json(result) for result in state.results],
            "progress": None if state.progress is None else _progress_to_json(state.progress),
        }
        with contextlib.suppress(OSError, UsageError):
            if not self._path.exists():
                self._path.parent.mkdir(parents=True, exist_ok=True)
                _remove_oldest(self._path.parent)
            write_json(self._path, strict(data))

    def finish(self) -> None:
        """The run has come to its end: nothing is to be taken up."""
        with contextlib.suppress(OSError):
            self._path.unlink()


def take_up(store: Store, identity: Identity, shard: Shard | None = None) -> tuple[Earlier, str]:
    """What an earlier run left that was the same and did not come to its end.

    Args:
        store: The ``.kcheck`` directory, open.
        identity: As the journal of the run has it.
        shard: Which part of a run it is.

    Returns:
        What it left, or nothing, and a sentence that says which.
    """
    path = _place(store, identity, shard)
    if not path.exists():
        return Earlier(), "there is no run to resume: this one starts from the start"
    try:
        document = read_node(path, "state of the last run")
        schema = document.get("schema").value
        if schema != RESUME_SCHEMA:
            raise InvalidDocument("schema", f"is {schema!r:.60}; this kcheck reads {RESUME_SCHEMA!r}")
        before = {name: at.text() for name, at in document.get("identity").entries()}
        changed = [name for name in {**identity, **before} if identity.get(name) != before.get(name)]
        if changed:
            return Earlier(), f"the last run cannot be resumed: its {changed[0]} was another; this one starts anew"
        return _earlier(document), _told(store, document)
    except UsageError as error:
        return Earlier(), f"the last run cannot be resumed: {error}; this one starts from the start"
    except RecursionError:
        return Earlier(), f"the last run cannot be resumed: {path} is malformed; this one starts from the start"


def earlier_seed(store: Store, targets: str, backend: str) -> int | None:
    """Seed of the last run of these targets that did not come to its end, be it of a shard; None if there is none."""
    wanted = {"targets": targets, "backend": backend}
    found: list[tuple[float, int]] = []
    with contextlib.suppress(OSError):
        for path in (store.root / FOLDER).glob("*.json"):
            with contextlib.suppress(OSError, UsageError, RecursionError):
                document = read_node(path, "state of the last run")
                if all(document.get("identity").get(name).text() == text for name, text in wanted.items()):
                    found.append((path.stat().st_mtime, document.get("seed").count() % 2**32))
    return max(found)[1] if found else None


def sources(file: str, *folders: Path) -> str:
    """Digest of a target's source: of its file's package, and of all that is imported from the folders.

    It is the same on all machines, wherever the files are.

    Args:
        file: Where the target is.
        folders: Of the user's project.
    """
    modules = {name: getattr(module, "__file__", None) for name, module in [*sys.modules.items()] if name != "__main__"}
    packages = {name.partition(".")[0] for name, path in modules.items() if path == file}
    found = {
        (name, path)
        for name, path in modules.items()
        if path and (name.partition(".")[0] in packages or _is_below(path, folders)) and is_user_code(path)
    }
    digest = hashlib.sha256()
    for name, path in sorted({("", file), *found}):
        with contextlib.suppress(OSError):
            digest.update(name.encode(errors="surrogateescape") + b"\0" + Path(path).read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Versions of what decides results."""
    found = {"version of kcheck": __version__}
    for name in ("torch", "triton", "hypothesis"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[f"version of {name}"] = metadata.version(name)
    return found


def _remove_oldest(folder: Path) -> None:
    """Make room for one more state, and remove what a run that was killed while it wrote has left."""
    by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
    for path in by_age[: -MOST_STATES + 1]:
        path.unlink(missing_ok=True)


def _is_below(file: str, folders: tuple[Path, ...]) -> bool:
    path = Path(file)
    installed = any(part.endswith("-packages") for part in path.parts)
    return not installed and any(path.is_relative_to(folder) for folder in folders)


def _place(store: Store, identity: Identity, shard: Shard | None) -> Path:
    parts = (identity.get("targets", ""), identity.get("backend", ""), str(shard or ""))
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return store.root / FOLDER / f"{name}.json"


def _progress_to_json(progress: Progress) -> dict[str, Any]:
    return {
        "result": target_to_json(progress.result),
        "seen": [discovery_to_json(one) for one in progress.seen],
        "swept": progress.swept,
        "drawn": progress.drawn,
    }


def _earlier(document: Node) -> Earlier:
    progress = document.get("progress")
    return Earlier(
        results=tuple(read_target(result) for result in document.get("results").items()),
        progress=None if progress.value is None else _progress(progress),
        seconds=document.get("seconds").seconds(),
    )


def _progress(node: Node) -> Progress:
    result = read_target(node.get("result"))
    if result.evidence is None:
        raise InvalidDocument(f"{node.where}.result", "has no evidence")
    return Progress(
        result=result,
        seen=tuple(read_discovery(one) for one in node.get("seen").items()),
        swept=node.get("swept").count(),
        drawn=node.get("drawn").count(),
    )


def _told(store: Store, document: Node) -> str:
    """Where the run goes on, and which case was running."""
    state = _earlier(document)
    parts = [f"{len(state.results)} {'target' if len(state.results) == 1 else 'targets'} done"] if state.results else []
    if state.progress is not None:
        found = len(state.progress.result.discoveries)
        parts.append(
            f"{state.progress.result.name} after {state.progress.swept:,} cases of the sweep, {state.progress.drawn:,} "
            f"random ones and {found} {'finding' if found == 1 else 'findings'}"
        )
    where = "; ".join(parts) or "at its start"
    left = store.left(document.get("case").text())
    case = f"; when it was killed a case was running: {left}" if left else ""
    return f"goes on with a run of {state.seconds:.0f} s, {where}{case}"
