"""A device address becomes a tensor, an index and a distance."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kcheck import strategies as ks
from kcheck.layout import Dim, Layout, Plane
from kcheck.sanitizer.log import Nearest
from kcheck.sanitizer.places import Allocation, bytes_text, index_beyond, place

BASE = 0x7F00_0000_0000
GIB = 1 << 30


def allocation(layout: Layout, itemsize: int = 1, *, name: str = "cache", address: int = BASE) -> Allocation:
    return Allocation(name, address, layout.backing_numel * itemsize, layout, itemsize)


CACHE = allocation(Layout.contiguous((512, 36 << 10)), name="k_cache")  # 512 pages of 36 KiB
ROWS = Layout((Dim(4), Dim(3, after=13)))  # torch.empty((4, 16))[:, :3]


def test_a_wild_page_id() -> None:
    found = place(BASE + 1048576 * (36 << 10) + 5, 1, [CACHE], None)
    assert found.text == "36 GiB past the end of k_cache, index 1048576 of 512 in dimension 0"
    assert (found.argument, found.index) == ("k_cache", (1048576, 5))
    assert found.cells == (1048576 * (36 << 10) + 5,)


def test_a_negative_page_id() -> None:
    found = place(BASE - (36 << 10), 1, [CACHE], None)
    assert found.text == "36,864 bytes in front of k_cache, index -1 of 512 in dimension 0"
    assert found.index == (-1, 0)


def test_one_byte_past_the_end() -> None:
    found = place(BASE + CACHE.nbytes, 1, [CACHE], None)
    assert found.text == "1 byte past the end of k_cache, index 512 of 512 in dimension 0"


def test_an_element_and_a_gap() -> None:
    table = allocation(ROWS, 4, name="table")
    assert place(BASE + 17 * 4, 4, [table], None).text == "table[1, 1]"
    gap = place(BASE + 5 * 4, 4, [table], None)
    assert (gap.text, gap.index, gap.cells) == ("a gap of table, element 5 of it", (), (5,))


def test_a_wide_access_that_runs_over_the_end() -> None:
    found = place(BASE + 4 * 14, 16, [allocation(Layout.contiguous((15,)), 4)], None)
    assert found.text == "cache[14], the last 12 bytes of the access past its end"
    assert found.cells == (14, 15, 16, 17)


def test_of_two_views_of_one_memory_the_one_that_has_the_element() -> None:
    pools = [
        allocation(Layout((Dim(8), Dim(16)), order=(0, 2, 1), planes=(Plane(2, i),)), name=name)
        for i, name in enumerate(("k", "v"))
    ]
    assert place(BASE + 16, 1, pools, None).text == "v[0, 0]"
    assert place(BASE + 32, 1, pools, None).text == "k[1, 0]"


def test_between_elements_of_a_stepped_view_beyond_its_end() -> None:
    stepped = allocation(Layout((Dim(4, step=2, after=1),)), 4)
    even, odd = place(BASE + 4 * 20, 4, [stepped], None), place(BASE + 4 * 21, 4, [stepped], None)
    assert (even.index, odd.index) == ((10,), ())
    assert "index 10 of 4 in dimension 0" in even.text


def test_the_only_tensor_whose_elements_fit_was_meant() -> None:
    table = allocation(ROWS, 4, name="table", address=BASE + 100 * GIB)
    found = place(BASE + 101 * GIB, 1, [CACHE, table], None)
    assert found.argument == "k_cache"


def test_a_guess_is_called_one_and_names_no_argument() -> None:
    other = allocation(Layout.contiguous((64,)), 1, name="other", address=BASE + 100 * GIB)
    found = place(BASE + 101 * GIB, 1, [CACHE, other], None)
    assert found.text == "1024 MiB past the end of other, the nearest tensor"
    assert (found.argument, found.index) == ("", ())


def test_the_nearest_allocation_may_be_no_argument() -> None:
    temporary = Nearest(BASE + 100 * GIB, 512)
    found = place(BASE + 100 * GIB + 600, 1, [CACHE], temporary)
    assert found.text == "89 bytes past the end of an allocation of 512 bytes that is no argument"
    assert found.argument == ""


def test_without_tensors_there_is_the_tools_own_word() -> None:
    assert place(BASE + 64, 4, [], Nearest(BASE, 64)).text == "1 byte past the end of an allocation of 64 bytes"
    assert place(0x10, 4, [], None).text == "address 0x10"


def test_scalars_and_expanded_views_have_no_dimension_that_runs_out() -> None:
    assert place(BASE + 8, 4, [allocation(Layout(()), 4)], None).text == "5 bytes past the end of cache"
    expanded = allocation(Layout((Dim(7, expanded=True),)), 4)
    assert place(BASE + 8, 4, [expanded], None).text == "5 bytes past the end of cache"


@given(ks.layouts((5, 3, 2)), st.sampled_from((1, 2, 4, 8)), st.data())
def test_every_element_of_every_layout_is_found(layout: Layout, itemsize: int, data: st.DataObject) -> None:
    index = tuple(data.draw(st.integers(0, size - 1)) for size in layout.shape)
    element = layout.offset_of(index)
    found = place(BASE + element * itemsize, itemsize, [allocation(layout, itemsize)], None)
    assert found.argument == "cache"
    assert layout.offset_of(found.index) == element
    assert found.cells == (element,)


@given(ks.layouts((5, 3, 2)), st.integers(-(10**6), 10**6), st.data())
def test_every_row_beyond_is_found_where_a_kernel_would_compute_it(
    layout: Layout, row: int, data: st.DataObject
) -> None:
    """With the largest stride that a dimension of more than one element has."""
    outer = max(range(3), key=lambda i: (layout.strides[i], layout.shape[i]))
    index = [data.draw(st.integers(0, size - 1)) for size in layout.shape]
    index[outer] = row if layout.strides[outer] else 0
    element = layout.offset_of(tuple(index))
    found, _ = index_beyond(layout, element)
    assert layout.offset_of(found) == element


@given(st.integers(0, 1 << 55))
def test_sizes_keep_their_magnitude(nbytes: int) -> None:
    number, unit = bytes_text(nbytes).split()
    exponent = ("", "", "MiB", "GiB", "TiB", "PiB").index(unit) if "iB" in unit else 0
    assert math.isclose(float(number.replace(",", "")) * 1024**exponent, nbytes, rel_tol=0.06)
