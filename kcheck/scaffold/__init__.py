"""Writes a first target for a wrapper: its kernels, its oracle, guesses about its arguments, marks where it guessed."""

from kcheck.scaffold.guess import DTYPES, SHAPES, Guess, Hypothesis, Kind, distinct, guesses
from kcheck.scaffold.references import defaults, kernels, oracle, returns
from kcheck.scaffold.text import Parts, render
from kcheck.scaffold.wrapper import Wrapper, find, search_path

__all__ = [
    "DTYPES",
    "SHAPES",
    "Guess",
    "Hypothesis",
    "Kind",
    "Parts",
    "Wrapper",
    "defaults",
    "distinct",
    "find",
    "guesses",
    "kernels",
    "oracle",
    "render",
    "returns",
    "search_path",
]
