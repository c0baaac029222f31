"""What kernels are told of tensors, against each byte of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kcheck.worker.backends.cuda.viewcheck import layout
from kcheck.worker.backends.cuda.viewcheck.table import MAX_SHADOW, Shadows, Slot, TooLarge, table
from kcheck.worker.backends.interpret.membership import View

FIRST = 4096
VIEWS = {
    "narrowed": View(FIRST, 4, (3, 2), (8, 1)),
    "stepped": View(FIRST, 2, (5,), (3,)),
    "transposed, with gaps": View(FIRST, 4, (2, 3), (1, 4)),
    "three gaps": View(FIRST, 1, (2, 2, 2, 2), (64, 16, 5, 2)),
    "overlapping": View(FIRST, 4, (4, 3), (2, 1)),
    "bytes": View(FIRST, 1, (2, 5), (9, 1)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_shadow_says_of_each_byte_and_width_whether_it_lies_inside(name: str) -> None:
    view = VIEWS[name]
    shadow = Shadows("cpu").of(((view, True),), FIRST, view.extent)
    for offset in range(view.extent):
        for number, width in enumerate(layout.WIDTHS):
            held = bool(shadow[offset] & (1 << number))
            assert held == (view.owns(FIRST + offset, width) and offset + width <= view.extent), (offset, width)
            assert bool(shadow[offset] & (1 << (number + 4))) == held


def test_a_shadow_tells_views_that_may_be_written_from_others() -> None:
    read, written = View(FIRST, 4, (2,), (2,)), View(FIRST + 4, 4, (2,), (2,))
    shadow = Shadows("cpu").of(((read, False), (written, True)), FIRST, 16)
    assert [bool(byte & 4) for byte in shadow.tolist()] == [True] * 13 + [False] * 3
    assert [bool(byte & 64) for byte in shadow.tolist()] == [i in (4, 12) for i in range(16)]


def test_shadows_are_made_once() -> None:
    shadows, view = Shadows("cpu"), VIEWS["narrowed"]
    assert shadows.of(((view, True),), FIRST, view.extent) is shadows.of(((view, True),), FIRST, view.extent)
    assert shadows.of(((view, False),), FIRST, view.extent) is not shadows.of(((view, True),), FIRST, view.extent)


def test_a_shadow_that_does_not_fit_is_refused() -> None:
    with pytest.raises(TooLarge, match="cannot be checked"):
        Shadows("cpu").of(((VIEWS["narrowed"], True),), FIRST, MAX_SHADOW + 1)


def words_of(slot: Slot) -> list[int]:
    words = table([slot], Shadows("cpu"), (100, 50), 777)
    assert words.dtype == np.int64
    assert words[layout.RECORDS] == 777
    assert (words[layout.SAFE_FIRST], words[layout.SAFE_SIZE]) == (100, 50)
    at = layout.SLOTS + slot.number * layout.SLOT
    return [int(word) for word in words[at : at + layout.SLOT]]


def test_a_dense_view_is_told_by_its_bounds_from_the_address_that_the_kernel_gets() -> None:
    view = View(FIRST, 4, (4, 5), (5, 1))
    words = words_of(Slot(3, FIRST + 20, ((view, True),), poison=0xA5))
    assert words[layout.READ_FIRST : layout.WRITE_END + 1] == [-20, 60, -20, 60]
    assert (words[layout.ADDRESS], words[layout.EXTENT], words[layout.SHADOW]) == (FIRST, 80, 0)
    assert words[layout.WRITABLE] == 1
    assert words[layout.POISON] == 0xA6


def test_what_must_not_be_written_has_no_bounds_for_writes() -> None:
    words = words_of(Slot(0, FIRST, ((View(FIRST, 4, (4,), (1,)), False),)))
    assert words[layout.READ_FIRST : layout.WRITE_END + 1] == [0, 16, 0, 0]
    assert words[layout.WRITABLE] == 0


def test_a_view_with_gaps_has_a_shadow_and_no_bounds() -> None:
    words = words_of(Slot(0, FIRST, ((VIEWS["narrowed"], True),)))
    assert words[layout.READ_FIRST : layout.WRITE_END + 1] == [0, 0, 0, 0]
    assert words[layout.SHADOW] != 0


def test_an_empty_view_holds_nothing() -> None:
    words = words_of(Slot(0, FIRST, ((View(FIRST, 4, (0, 3), (3, 1)), True),)))
    assert (words[layout.ADDRESS], words[layout.EXTENT]) == (FIRST, 0)
    assert words[layout.READ_FIRST : layout.WRITE_END + 1] == [0, 0, 0, 0]


def test_the_device_is_torchs() -> None:
    assert Shadows("cpu").of(((VIEWS["bytes"], True),), FIRST, 14).device == torch.device("cpu")
