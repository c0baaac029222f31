"""Every code block of README and docs is run, as a reader would run it, in a folder for each page.

Python with a file name in its first line becomes that file; other Python runs at once. In a console block each ``$``
line is a command: it must end with the exit code that its comment names (0 without one), and print the lines below it,
in this order. A diff is applied to the page's files. YAML is parsed, TOML becomes pyproject.toml and is read by kcheck.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kcheck import config

if TYPE_CHECKING:
    from tests.docs.conftest import Block

    BlocksOf = Callable[[str], list[Block]]

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python", "console", "diff", "yaml", "toml"}
# Blocks that cannot run here, by reason: another one is written down here, or it is not left out.
NOT_RUN = {
    "installs packages": 2,
    "needs an NVIDIA GPU": 8,
    "takes 40 seconds": 1,
    "needs a run that was killed": 1,
}
KERNELS = Path(__file__).parent / "kernels"
# Pages that say that they use the README's target.
OF_README = {
    "docs/ci/README.md",
    "docs/long-runs.md",
    "docs/pytest.md",
    "docs/reports.md",
    "docs/sanitize.md",
    "docs/workers.md",
}
BUDGET = "[tool.kcheck]\nmax-examples = 20\nseed = 1\n"  # pages show commands without it


def flat(text: str) -> str:
    """Text without line breaks and other space, which depend on paths and terminals."""
    return "".join(text.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for a page; modules that are imported from it are forgotten afterwards."""
    place = tmp_path / "page"
    place.mkdir()
    (place / "pyproject.toml").write_text(BUDGET)
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    yield place
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(place)):
            del sys.modules[name]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A PATH on which kcheck, python and pytest are those of this environment."""
    tools = tmp_path_factory.mktemp("bin")
    for name, command in {"kcheck": "-P -m kcheck", "pytest": "-P -m pytest -p no:cacheprovider", "python": ""}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "NO_COLOR": "1", "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"}


class Page:
    """A page that is being run."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.names: dict[str, Any] = {"__name__": "page"}

    def python(self, block: Block) -> None:
        if not block.file:
            exec(compile(block.text, block.place, "exec"), self.names)
            return
        path = self.folder / block.file
        path.write_text(block.text)
        runpy.run_path(str(path))

    def console(self, block: Block) -> None:
        commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
        assert commands[0] == "", f"{block.place}: the first line is no command"
        for command in commands[1:]:
            line, _, expected = command.partition("\n")
            self._run(block, line, expected.splitlines())

    def diff(self, block: Block) -> None:
        old, new = (
            "".join(f"{line[1:]}\n" for line in block.text.splitlines() if line[0] in wanted) for wanted in ("- ", "+ ")
        )
        (path,) = [path for path in self.folder.glob("*.py") if old in path.read_text()]
        path.write_text(path.read_text().replace(old, new))

    def yaml(self, block: Block) -> None:
        assert yaml.safe_load(block.text)

    def toml(self, block: Block) -> None:
        path = self.folder / "pyproject.toml"
        text = block.text if "max-examples" in block.text else block.text.replace("[tool.kcheck]\n", BUDGET, 1)
        for name in tomllib.loads(text)["tool"]["kcheck"].get("targets", []):
            assert (self.folder / name.partition("::")[0]).exists() or not name.endswith(".py")
        path.write_text(text)
        assert config.read() != config.Config()

    def _run(self, block: Block, line: str, expected: list[str]) -> None:
        command, _, comment = line.partition("   # ")
        code = re.match(r"exit code (\d+)", comment)
        done = subprocess.run(
            ["bash", "-c", _made(command)],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        told = f"{block.place}: $ {command}\n{done.stdout}"
        assert done.returncode == (int(code[1]) if code else 0), told
        said, at = flat(done.stdout.replace(f"{ROOT}/", "")), 0
        for wanted in filter(None, map(flat, expected)):
            found = said.find(wanted, at)
            assert found >= 0, f"{wanted!r} is not there, or not in this place: {told}"
            at = found + len(wanted)


def _made(command: str) -> str:
    """The command; of a make target its recipe, with what it has on PATH, and no random cases: the sweep finds it."""
    if not command.startswith("make "):
        return command
    target = command.removeprefix("make ")
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe, command
    lines = "\n".join(line.strip().removeprefix("@") for line in recipe[1].splitlines())
    return re.sub(r"--max-examples \d+", "--max-examples 0", lines.replace("$(BIN)/", "").replace("$$", "$"))


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page: str, blocks_of: BlocksOf, folder: Path, environment: dict[str, str]) -> None:
    running = Page(folder, environment)
    if page == "docs/findings.md":
        (folder / "findings.py").write_text((KERNELS / "findings.py").read_text())
    if page in OF_README:
        assert "of the [README](" in " ".join((ROOT / page).read_text().split())
        for block in blocks_of("README.md"):
            if block.file:
                running.python(block)
    for block in blocks_of(page):
        if not block.reason:
            getattr(running, block.language)(block)


def test_no_block_is_left_out_without_a_reason(blocks_of: BlocksOf) -> None:
    blocks = [block for page in PAGES for block in blocks_of(page)]
    fences = sum(line.startswith("```") for page in PAGES for line in (ROOT / page).read_text().splitlines())
    assert 2 * len(blocks) == fences
    assert {block.language for block in blocks} <= LANGUAGES
    assert Counter(block.reason for block in blocks if block.reason) == Counter(NOT_RUN)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / page).parent / file if file else ROOT / page
        assert target.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page}: {link}"


def anchors(page: Path) -> set[str]:
    """Anchors of headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
