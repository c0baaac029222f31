"""The picture in the HTML report, against the layout itself."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kcheck.case import Case, Memory, Tensor
from kcheck.layout import Dim, Layout, Plane
from kcheck.reports.html_picture import draw
from kcheck.reports.picture import Mark


def test_a_wrong_cell_beside_a_narrowed_view() -> None:
    """``torch.empty((4, 8))[:, :3]`` with row 0, column 3 read."""
    case = Case(t=Tensor("int32", Layout((Dim(4), Dim(3, after=5)))))
    drawn = draw(case, "t", (3,), "read outside the view")
    assert drawn is not None
    assert [row.label for row in drawn.rows] == ["[0, :]", "[1, :]", "[2, :]", "[3, :]"]
    assert [row.note for row in drawn.rows] == ["t[0, :]", "t[1, :]", "t[2, :]", "t[3, :]"]
    first = drawn.rows[0].cells
    assert [cell.mark for cell in first] == [*[Mark.VIEW] * 3, Mark.FIRST, *[Mark.GAP] * 4]
    assert first[2].title == "backing element 2: t[0, 2]"
    assert first[3].title == "backing element 3, [0, 3]: in a gap, read outside the view"
    assert drawn.first == "backing element 3, [0, 3]: in a gap"
    assert [number for _, number in drawn.numbers] == [3, 0, 7]
    assert drawn.legend == {Mark.VIEW: "t", Mark.GAP: "gap", Mark.FIRST: "read outside the view"}


def test_what_is_left_out_is_counted() -> None:
    """Rows and columns far from anything of interest."""
    drawn = draw(Case(x=Tensor("int8", Layout((Dim(1000), Dim(5000, after=24))))), "x", (5002,))
    assert drawn is not None
    skipped = [cell.title for cell in drawn.rows[0].cells if cell.mark is None]
    shown = sum(cell.mark is not None for cell in drawn.rows[0].cells)
    assert sum(int(title.split()[0].replace(",", "")) for title in skipped) == 5024 - shown
    assert sum(int(row.note.split()[0].replace(",", "")) for row in drawn.rows if not row.cells) == 1000 - sum(
        bool(row.cells) for row in drawn.rows
    )


def test_the_path_is_a_line_with_numbers() -> None:
    """From cell to cell; where one is not in the picture, the line ends and goes on behind it."""
    layout = Layout((Dim(4), Dim(3, after=5)))
    drawn = draw(Case(t=Tensor("int32", layout)), "t", (3,), "read", path=(0, 8, 16, 3), walked="path of program (0,)")
    assert drawn is not None
    middles = {(row.y, cell.x): (cell.x + 7, row.y + 7) for row in drawn.rows for cell in row.cells}
    cells = [drawn.rows[i].cells[at] for i, at in ((0, 0), (1, 0), (2, 0), (0, 3))]
    rows = [drawn.rows[i] for i in (0, 1, 2, 0)]
    points = [middles[row.y, cell.x] for row, cell in zip(rows, cells, strict=True)]
    assert drawn.lines == (" ".join(f"{x},{y}" for x, y in points),)
    assert drawn.steps == tuple((x, y, number) for number, (x, y) in enumerate(points[:3], 1))
    assert [cell.title.partition("step")[2] for cell in cells] == [f" {number} of the path" for number in range(1, 5)]
    assert drawn.walked == "path of program (0,)"
    path = (0, 1, *range(2000, 2060), 4999, 5000)
    long = draw(Case(x=Tensor("int8", Layout.contiguous((5000,)))), "x", (5000,), path=path)
    assert long is not None
    numbers = [number for _, _, number in long.steps]
    assert len(numbers) < len(path) - 1
    assert len(long.lines) > 1
    assert (numbers[:2], numbers[-1]) == ([1, 2], len(path) - 1)
    assert long.lines[-1].count(",") >= 2


def test_nothing_to_draw() -> None:
    """No memory, nothing wrong."""
    assert draw(Case(x=Tensor("int8", Layout.contiguous((0,)))), "x") is None
    assert draw(Case(x=Tensor("int8", Layout.contiguous((0,)))), "x", (0,)) is not None


def test_another_view_of_the_memory_is_named() -> None:
    """``k, v = pool.unbind(1)``."""
    memory = Memory()
    k, v = (Layout((Dim(2), Dim(4)), order=(0, 2, 1), planes=(Plane(2, i),)) for i in (0, 1))
    case = Case(k=Tensor("int8", k, memory=memory), v=Tensor("int8", v, memory=memory))
    drawn = draw(case, "k", (4,))
    assert drawn is not None
    assert drawn.rows[1].note == "v[0, :]"
    assert drawn.rows[1].cells[1].title == "backing element 5: v[0, 1]"
    assert drawn.legend[Mark.OTHER] == "v"


sizes = st.integers(1, 9)
layouts = st.builds(
    Layout,
    st.lists(
        st.builds(Dim, sizes, before=st.integers(0, 3), step=st.integers(1, 3), after=st.integers(0, 90)),
        min_size=1,
        max_size=3,
    ).map(tuple),
    offset=st.integers(0, 9),
)


@settings(deadline=None)
@given(layouts, st.data())
def test_every_title_is_true(layout: Layout, data: st.DataObject) -> None:
    """Backing index and logical index belong together; cells lie apart and within the picture."""
    wrong = data.draw(st.lists(st.integers(-20, layout.backing_numel + 20), unique=True, max_size=4))
    drawn = draw(Case(x=Tensor("int8", layout)), "x", wrong)
    assert drawn is not None
    for row in drawn.rows:
        places = [cell.x for cell in row.cells]
        assert all(later - earlier >= 15 for earlier, later in pairwise(places))
        assert all(drawn.left <= x <= drawn.notes - 14 for x in places)
        assert row.y + 14 <= drawn.height
        for cell in row.cells:
            found = re.fullmatch(r"backing element (\d+): x\[([\d, ]+)\](, wrong)?", cell.title)
            assert bool(found) or cell.mark is not Mark.VIEW
            if found:
                assert layout.offset_of(tuple(map(int, found[2].split(",")))) == int(found[1])
                assert (int(found[1]) in wrong) == bool(found[3]) == (cell.mark in (Mark.WRONG, Mark.FIRST))
