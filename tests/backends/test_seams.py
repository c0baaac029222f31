"""The table of Triton's internals: complete for this version, and it names what has moved."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
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
    owner: Any = importlib.import_module(seam.module)
    *path, name = seam.path.split(".")
    for part in path:
        owner = getattr(owner, part)
    if seam.stored:
        monkeypatch.setattr(owner, "__init__", lambda self: None)
    else:
        try:
            monkeypatch.delattr(owner, name)
        except (AttributeError, TypeError):
            pytest.skip("an attribute of an instance, of a base class or of an extension module")
        if hasattr(owner, name):
            pytest.skip("a base class has it too")
    if seam.exists():
        pytest.skip("a base class sets it")
    with pytest.raises(UnsupportedVersion) as caught:
        triton_seams.check()
    reported = str(caught.value).split("relies on ")[1].split(",")[0]
    assert reported == seam.name or seam.stored or seam.name.startswith(f"{reported}.")
    assert "supported are Triton 3.4 to 3.9" in str(caught.value)


def test_the_table_is_complete() -> None:
    """Whatever the package takes from one of Triton's private modules stands in the table."""
    prefixes = {
        "interpreter": "triton.runtime.interpreter",
        "builder": "triton.runtime.interpreter.interpreter_builder",
        "semantic": "triton.language.semantic.TritonSemantic",
        "core": "triton.language.core",
        "jit": "triton.runtime.jit",
        "autotuner": "triton.runtime.autotuner",
        "standard": "triton.language.standard",
    }
    listed = {seam.name for seam in triton_seams.SEAMS}
    run_time = {"triton.runtime.interpreter.interpreter_builder.grid_idx", "triton.language.standard.__name__"}
    missing = set()
    for file in Path(triton_seams.__file__).parent.glob("*.py"):
        if file.name == "triton_seams.py":
            continue
        for module, attribute in re.findall(rf"(?<![\w.])({'|'.join(prefixes)})\.(\w+)", file.read_text()):
            name = f"{prefixes[module]}.{attribute}"
            if name not in listed | run_time and not any(other.startswith(f"{name}.") for other in listed):
                missing.add(name)
    assert not missing


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
