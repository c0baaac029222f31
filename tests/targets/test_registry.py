"""The list of built-in targets, and the modules that it speaks of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kcheck import loader
from kcheck.findings import Kind
from kcheck.spec import spec_of
from kcheck.targets import registry

HERE = Path(registry.__file__).parent


def test_every_module_is_listed() -> None:
    found = {path for folder in ("", "zoo", "controls") for path in (HERE / folder).glob("*.py")}
    found -= {HERE / "__init__.py", HERE / "zoo/__init__.py", HERE / "controls/__init__.py", HERE / "registry.py"}
    assert {loader.builtin_file(name) for name in registry.modules()} == found


def test_no_name_is_listed_twice() -> None:
    specs = [spec for pair in registry.PAIRS for spec in (pair.right, pair.wrong)] + list(registry.CONTROLS)
    assert len(specs) == len(set(specs)) == len(registry.modules())
    assert len(registry.PAIRS) >= 24
    assert len(registry.CONTROLS) >= 10


@pytest.mark.parametrize("pair", registry.PAIRS, ids=lambda pair: pair.name)
def test_the_twins_differ_in_the_bug_alone(pair: registry.Pair) -> None:
    ((right,), (wrong,)) = loader.load(pair.right), loader.load(pair.wrong)
    assert (right.spec, wrong.spec) == (pair.right, pair.wrong)
    assert (spec_of(right.target, HERE), spec_of(wrong.target, HERE)) == (pair.right, pair.wrong)
    assert right.target.cases is wrong.target.cases
    assert right.target.oracle is wrong.target.oracle
    assert right.target.roles == wrong.target.roles
    assert pair.kinds
    assert set(pair.kinds) <= set(Kind)


@pytest.mark.parametrize("spec", registry.CONTROLS)
def test_a_control_has_an_oracle(spec: str) -> None:
    (control,) = loader.load(spec)
    assert control.target.oracle is not None
    assert control.target.kernels


@pytest.mark.parametrize("name", sorted(registry.modules()))
def test_an_example_is_short(name: str) -> None:
    """At most 40 lines for each of the two."""
    if "." in registry.modules()[name].removeprefix("kcheck.targets."):
        lines = len(loader.builtin_file(name).read_text().splitlines())
        assert lines <= 80


def test_a_finding_proves_a_pair_by_its_argument_or_its_culprit() -> None:
    pair = registry.Pair("name", "right", "wrong", "mask", (Kind.RACE,), "x")
    assert pair.is_proven_by("race", "x")
    assert pair.is_proven_by("race", "out", "x")
    assert not pair.is_proven_by("race", "out", "y")
    assert not pair.is_proven_by("dead-read", "x")


def test_the_list_needs_no_torch() -> None:
    code = "import sys; import kcheck.targets.registry; print('torch' in sys.modules, 'hypothesis' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_the_page_shows_every_pair_and_every_control() -> None:
    page = (Path(__file__).parents[2] / "docs" / "zoo.md").read_text()
    pairs, controls = page.split("## Controls")
    for pair in registry.PAIRS:
        assert f"| `{pair.name}` | {pair.mechanism} |" in pairs
    assert {f"builtin:{line.split('`')[1]}" for line in controls.splitlines() if line.startswith("| `")} == set(
        registry.CONTROLS
    )
