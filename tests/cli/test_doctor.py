"""What ``kcheck doctor`` says of the installed torch and Triton."""

from __future__ import annotations

import importlib.metadata

import pytest

from kcheck.cli.doctor import _asked, _pair


@pytest.mark.parametrize(
    ("needed", "asked"),
    [
        (["triton-kernels==1.0", 'triton==3.4.0; platform_system == "Linux"'], "==3.4.0"),
        (['triton (>=3.4) ; platform_system == "Linux"'], ">=3.4"),
        (["sympy>=1.13"], ""),  # a build for the CPU
        (None, ""),
    ],
)
def test_what_torch_asks_for(needed: list[str] | None, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: needed)
    assert _asked() == asked


def test_a_pair_that_does_not_belong_together_is_told_with_one_that_does() -> None:
    told = _pair("2.8.0", "3.7.1", "==3.4.0")
    assert told.startswith("torch 2.8.0 asks for triton ==3.4.0, and here it is 3.7.1: install triton==3.4.0; ")
    assert "torch 2.13.0 with triton 3.7.1" in told
    assert _pair("2.8.0", "3.4.0", "==3.4.0") == "triton 3.4.0 is what torch 2.8.0 asks for"
    assert "torch 2.13.0 with triton 3.7.1" in _pair("2.13.0+cpu", "3.7.1", "")
