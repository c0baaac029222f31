"""``python -m kcheck``."""

from kcheck.cli import main

main()
