"""Folded stacks become one tree, and the tree a picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from bench.flame import COLOURS, ROW, draw, tree

FOLDED = (
    "main (a.py);ask (semmem/x.py) 30\nmain (a.py);write <T> (libc.so.6) 69\nmain (a.py);rare (a.py) 1\nother 100\n"
)


def test_a_frame_has_its_own_samples_and_those_of_its_callees() -> None:
    root = tree(FOLDED)
    assert root.samples == 200
    assert root.callees["main (a.py)"].samples == 100
    assert root.callees["main (a.py)"].callees["ask (semmem/x.py)"].samples == 30


def test_a_picture_is_svg_as_wide_as_the_shares(tmp_path: Path) -> None:
    draw(FOLDED, "of <a> case", tmp_path / "flame.svg")
    svg = ElementTree.parse(tmp_path / "flame.svg").getroot()
    titles = [each.text for each in svg.iter("{http://www.w3.org/2000/svg}title")]
    assert "ask (semmem/x.py): 15.0%" in titles
    assert "write <T> (libc.so.6): 34.5%" in titles
    assert len(titles) == 5


def test_what_is_narrower_than_half_a_per_cent_is_left_out(tmp_path: Path) -> None:
    draw(FOLDED + "main (a.py);ask (semmem/x.py) 400\n", "title", tmp_path / "flame.svg")
    assert "rare" not in (tmp_path / "flame.svg").read_text()


def test_threads_that_wait_are_no_part_of_it() -> None:
    waiting = "main (a.py);select (uv.c);epoll_wait (libc.so.6) 1000\n"
    assert tree(FOLDED + waiting) == tree(FOLDED)


def colour_of(folder: Path, frame: str) -> str | None:
    draw(f"{frame} 10\n", "title", folder / "flame.svg")
    (box,) = ElementTree.parse(folder / "flame.svg").getroot().iter("{http://www.w3.org/2000/svg}rect")
    return box.get("fill")


def test_semmem_python_and_native_frames_are_told_apart(tmp_path: Path) -> None:
    assert colour_of(tmp_path, "ask (semmem/x.py)") == COLOURS["semmem"]
    assert colour_of(tmp_path, "ask (grpc/x.py)") == COLOURS["python"]
    assert colour_of(tmp_path, "grpc_call (cygrpc.so)") == colour_of(tmp_path, "memcpy") == COLOURS["native"]


def test_a_callee_lies_over_its_caller_and_beside_its_neighbour(tmp_path: Path) -> None:
    draw("a;b 30\na;c 70\n", "title", tmp_path / "flame.svg")
    boxes = list(ElementTree.parse(tmp_path / "flame.svg").getroot().iter("{http://www.w3.org/2000/svg}rect"))
    left, top, width = zip(
        *(tuple(float(box.get(key, "")) for key in ("x", "y", "width")) for box in boxes), strict=True
    )
    assert left == (0, 0, 360)
    assert width == (1200, 360, 840)
    assert top[1] == top[2] == top[0] - ROW


def test_where_nothing_was_sampled_there_is_a_picture_of_nothing(tmp_path: Path) -> None:
    draw("", "idle", tmp_path / "flame.svg")
    assert "idle; 0 samples" in (tmp_path / "flame.svg").read_text()
