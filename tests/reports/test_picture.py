"""Pictures of backings, against drawings by hand and against the layout itself."""

from __future__ import annotations

import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kcheck.layout import Dim, Layout, Plane
from kcheck.reports.console import render
from kcheck.reports.picture import Grid, Mark, Row, Skip, picture, whereabouts
from kcheck.reports.picture_view import BackingPicture

NARROWED = Layout((Dim(4), Dim(3, after=5)))


def drawn(view: BackingPicture, width: int = 80) -> list[str]:
    return render(view, width).rstrip("\n").split("\n")


def test_a_wrong_cell_beside_a_narrowed_view() -> None:
    """The picture of ``torch.empty((4, 8))[:, :3]`` with row 0, column 3 read."""
    assert drawn(BackingPicture("t", NARROWED, (3,), said="read outside the view")) == [
        "        0     3       7",
        "[0, :]  ■ ■ ■ X · · · ·   t[0, :]",
        "[1, :]  ■ ■ ■ · · · · ·   t[1, :]",
        "[2, :]  ■ ■ ■ · · · · ·   t[2, :]",
        "[3, :]  ■ ■ ■ · · · · ·   t[3, :]",
        "",
        "■ t   · gap   X read outside the view",
    ]


def test_interleaved_planes_name_the_other_view() -> None:
    """``k, v = pool.unbind(1)``, and the kernel that reads k reads v."""
    k, v = (Layout((Dim(2), Dim(4)), order=(0, 2, 1), planes=(Plane(2, i),)) for i in (0, 1))
    assert drawn(BackingPicture("k", k, (4, 5), others={"v": v})) == [
        "           0     3",
        "[0, 0, :]  ■ ■ ■ ■   k[0, :]",
        "[0, 1, :]  X x □ □   v[0, :]",
        "[1, 0, :]  ■ ■ ■ ■   k[1, :]",
        "[1, 1, :]  □ □ □ □   v[1, :]",
        "",
        "■ k   □ v   x wrong   X the first of them",
    ]
    assert whereabouts("k", k, 5, {"v": v}) == "backing element 5: v[0, 1]"


def test_a_transposed_view_has_memory_order_rows() -> None:
    """Rows are the outer dimension of the memory, not of the view."""
    assert drawn(BackingPicture("m", Layout((Dim(5), Dim(2, after=1)), order=(1, 0))))[:4] == [
        "        0       4",
        "[0, :]  ■ ■ ■ ■ ■   m[:, 0]",
        "[1, :]  ■ ■ ■ ■ ■   m[:, 1]",
        "[2, :]  · · · · ·",
    ]


def test_one_dimension_with_steps_and_an_offset() -> None:
    """Columns count from the start of the memory, the base offset included."""
    layout = Layout((Dim(4, step=2, before=1),), offset=2)
    assert drawn(BackingPicture("x", layout)) == ["  0               8 9", "  · · · ■ · ■ · ■ · ■", "", "■ x   · gap"]


def test_cells_around_the_backing() -> None:
    """A base offset, a cell in front of it, and one behind the backing."""
    layout = Layout((Dim(2), Dim(4)), offset=2)
    assert drawn(BackingPicture("x", layout, (-1, 10))) == [
        "        0 1   3",
        "offset  ░ X · ·",
        "[0, :]  ■ ■ ■ ■   x[0, :]",
        "[1, :]  ■ ■ ■ ■   x[1, :]",
        "behind  x ░ ░ ░",
        "",
        "■ x   · gap   ░ outside the backing   x wrong   X the first of them",
    ]
    assert whereabouts("x", layout, -1) == "1 element before the backing"
    assert whereabouts("x", layout, 1) == "backing element 1: in the base offset"
    assert whereabouts("x", layout, 10) == "the first element behind the backing"
    assert whereabouts("x", layout, 12) == "3 elements behind the backing"
    assert whereabouts("x", NARROWED, 3) == "backing element 3, [0, 3]: in a gap"


def test_a_write_behind_a_long_row_is_in_the_picture() -> None:
    """5000 elements in one row: both ends are drawn, and what was written behind them."""
    lines = drawn(BackingPicture("x", Layout.contiguous((5000,)), tuple(range(5000, 5064)), said="written"), 60)
    assert all(len(line) <= 60 for line in lines)
    assert "■Xx" in lines[1]
    assert "5000" in lines[0]
    assert "…" in lines[1]


def test_the_path_to_a_wrong_cell_is_numbered() -> None:
    """Down a column, then beside the view; what comes twice keeps its first number."""
    view = BackingPicture("t", NARROWED, (3,), path=(0, 8, 0, 16, 3), walked="path of program (0, 0, 0)")
    assert drawn(view) == [
        "        0     3       7",
        "[0, :]  1 ■ ■ X · · · ·   t[0, :]",
        "[1, :]  2 ■ ■ · · · · ·   t[1, :]",
        "[2, :]  4 ■ ■ · · · · ·   t[2, :]",
        "[3, :]  ■ ■ ■ · · · · ·   t[3, :]",
        "",
        "■ t   · gap   X wrong",
        "1…4 path of program (0, 0, 0)",
    ]


def test_of_a_long_path_nine_steps_have_numbers() -> None:
    """And it is seen where it goes on; in a row too long to draw, as far as there is room."""
    layout = Layout.contiguous((12,))
    view = BackingPicture("x", layout, (12,), path=range(13), walked="path of program (0, 0, 0), 13 steps")
    assert drawn(view)[1:] == [
        "  1 2 3 4 5 6 7 8 9 + + + X ░",
        "",
        "■ x   ░ outside the backing   X wrong",
        "1…9 + path of program (0, 0, 0), 13 steps",
    ]
    lines = drawn(BackingPicture("x", Layout.contiguous((5000,)), (5000,), path=(*range(63), 5000), walked="path"), 60)
    assert lines[1].startswith("  123456789++")
    assert "■X░" in lines[1]
    assert len(lines[1]) <= 60


@pytest.mark.parametrize("layout", [Layout(()), Layout((Dim(1), Dim(1)))], ids=["rank 0", "one element"])
def test_one_element(layout: Layout) -> None:
    """A single cell has no rows to label."""
    assert drawn(BackingPicture("x", layout)) == ["  0", "  ■", "", "■ x"]


@pytest.mark.parametrize("shape", [(0,), (0, 8), (4, 0)])
def test_no_elements(shape: tuple[int, ...]) -> None:
    """An empty backing has no picture, unless something was touched there."""
    assert drawn(BackingPicture("x", Layout.contiguous(shape))) == ["the backing has no elements"]
    assert "X" in "".join(drawn(BackingPicture("x", Layout.contiguous(shape), (0,))))


@pytest.mark.parametrize(
    ("layout", "wrong"),
    [
        (Layout((Dim(256), Dim(4000, after=96))), (4000, 255 * 4096 + 4001)),
        (Layout((Dim(3, step=2**30), Dim(4, after=4))), (2**33 + 10,)),
        (Layout((Dim(2), Dim(2**32))), (-(2**40), 2**45)),
        (Layout((Dim(3), Dim(2), Dim(2**31, step=2)), offset=7), tuple(range(64))),
    ],
    ids=["256 x 4096", "far rows", "far columns", "three dimensions"],
)
def test_huge_backings_cost_nothing(layout: Layout, wrong: tuple[int, ...]) -> None:
    """Only drawn cells are looked at; the first wrong one is among them and lines fit."""
    start = time.perf_counter()
    lines = drawn(BackingPicture("x", layout, wrong), 76)
    assert time.perf_counter() - start < 0.5
    assert any("X" in line for line in lines[:-1])
    assert all(len(line) <= 76 for line in lines)
    assert len(lines) <= 12 + 5


def test_an_empty_view_of_a_long_backing() -> None:
    """Nothing is interesting in it but its ends."""
    assert "·" in drawn(BackingPicture("x", Layout((Dim(0, after=200),))), 60)[1]


def test_ascii_where_the_stream_has_nothing_else() -> None:
    """Characters stay distinct in an ASCII log."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(file=stream, width=80, color_system=None).print(BackingPicture("t", NARROWED, (3, 32)), crop=False)
    stream.seek(0)
    assert "[0, :]  # # # X . . . .   t[0, :]" in stream.read()


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    small = st.integers(0, 3)
    dims = draw(
        st.lists(
            st.builds(Dim, st.integers(0, 40), small, st.integers(1, 3), small)
            | st.builds(Dim, st.integers(0, 4), small, st.just(1), small, st.just(True)),
            max_size=3,
        )
    )
    planes = draw(st.lists(st.sampled_from([Plane(1, 0), Plane(2, 1), Plane(3, 0)]), max_size=1))
    order = draw(st.permutations(range(len(dims) + len(planes))))
    return Layout(tuple(dims), tuple(order), tuple(planes), draw(st.integers(0, 9)))


@given(
    layouts(),
    st.lists(st.integers(-50, 5000), max_size=5, unique=True),
    st.lists(st.integers(-50, 200), max_size=12),
    st.integers(1, 70),
    st.integers(1, 12),
)
def test_every_drawn_cell_is_what_the_layout_says(
    layout: Layout, wrong: list[int], path: list[int], columns: int, rows: int
) -> None:
    """Marks agree with `Layout.index_at`, nothing is drawn twice, skips count what they stand for."""
    grid, drawn_picture = Grid(layout), picture(layout, wrong, path=path, columns=columns, rows=rows)
    assert len(drawn_picture.columns) <= columns
    assert len(drawn_picture.rows) <= rows
    numbers = [column for column in drawn_picture.columns if not isinstance(column, Skip)]
    assert numbers == sorted(set(numbers))
    for row in drawn_picture.rows:
        if isinstance(row, Skip):
            assert row.count > 1 or rows < 5
            continue
        for at, (column, mark) in enumerate(zip(drawn_picture.columns, row.cells, strict=True)):
            if isinstance(column, Skip):
                assert mark is None
                continue
            element = grid.element(row.number, column)
            assert grid.place(element) == (row.number, column)
            assert row.steps[at] == (path.index(element) + 1 if element in path else 0)
            if element in wrong:
                assert mark is (Mark.FIRST if element == wrong[0] else Mark.WRONG)
            elif not 0 <= element < layout.backing_numel:
                assert mark is Mark.OUTSIDE
            else:
                assert mark is (Mark.GAP if layout.index_at(element) is None else Mark.VIEW)


@given(layouts(), st.lists(st.integers(-50, 5000), max_size=5, unique=True))
def test_the_first_wrong_cell_is_always_drawn(layout: Layout, wrong: list[int]) -> None:
    """And every line fits into 60 columns."""
    lines = drawn(BackingPicture("x", layout, wrong), 60)
    assert all(len(line) <= 60 for line in lines)
    rows = [row for row in picture(layout, wrong).rows if isinstance(row, Row)]
    assert not wrong or any(Mark.FIRST in row.cells for row in rows)


@given(layouts())
def test_a_row_of_the_view_is_named_by_its_cells(layout: Layout) -> None:
    """The label beside a row is the index that its cells have in common."""
    grid = Grid(layout)
    for row in list(grid.rows)[:20]:
        found = [index for column in list(grid.columns) if (index := layout.index_at(grid.element(row, column)))]
        label = grid.of_view(row)
        if label:
            parts = label.strip("[]").split(", ")
            assert all(part in (":", str(at)) for index in found for part, at in zip(parts, index, strict=True))
