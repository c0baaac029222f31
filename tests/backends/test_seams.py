"""The table of Triton's internals: complete for this version, and it names what has moved."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from kcheck.errors import UnsupportedVersion
from kcheck.worker.backends.interpret import InterpretBackend, triton_seams

HERE = triton_seams.installed_version()
REQUIRED = [seam for seam in triton_seams.SEAMS if seam.since <= HERE <= seam.until]


def test_the_installed_triton_has_every_seam() -> None:
    triton_seams.check()


@pytest.mark.parametrize("seam", REQUIRED, ids=lambda seam: seam.name)
def test_a_seam_that_moved_is_named(monkeypatch: pytest.MonkeyPatch, seam: triton_seams.Seam) -> None:
    *path, name = seam.path.split(".")
    owner: Any = importlib.import_module(seam.module)
    for part in path:
        owner = getattr(owner, part)
    try:
        monkeypatch.delattr(owner, name)
    except (AttributeError, TypeError):  # inherited, or of an extension module
        pytest.skip("cannot be taken away")
    with pytest.raises(UnsupportedVersion) as caught:
        triton_seams.check()
    message = str(caught.value)
    assert seam.module in message
    assert "3.4 to 3.9" in message
    first = next(other for other in REQUIRED if other.name in message)
    assert seam.name == first.name or seam.name.startswith(f"{first.name}.")


def test_watching_checks_the_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("triton.runtime.interpreter._patch_lang")
    with pytest.raises(UnsupportedVersion, match="_patch_lang"), InterpretBackend().watch([]):
        pass


@pytest.mark.parametrize("version", ["3.3.1", "3.10.0", "4.0.0", "2.1.0", "unknown"])
def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr("triton.__version__", version)
    with pytest.raises(UnsupportedVersion, match=version.replace(".", r"\.")):
        triton_seams.check()


def test_no_triton_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_seams, "triton", None)
    with pytest.raises(UnsupportedVersion, match="not installed"):
        triton_seams.check()


@pytest.mark.parametrize("seam", triton_seams.SEAMS, ids=lambda seam: seam.name)
def test_version_ranges_make_sense(seam: triton_seams.Seam) -> None:
    assert triton_seams.OLDEST <= seam.since <= seam.until <= triton_seams.NEWEST
