"""What an installed kcheck must hold."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_package_is_installed() -> None:
    """An editable install hides a package that the list lacks."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "kcheck").rglob("__init__.py")}
    found |= {name for name, folder in setup["package-dir"].items() if (ROOT / folder / "__init__.py").exists()}
    assert sorted(setup["packages"]) == sorted(found)
