"""Random Triton kernels and random views: what two engines have to agree on.

A package loaded from its folder, by tests and benchmarks: ``make_kernels`` makes kernels, `Pair` launches them.
"""

from .pairs import Pair, Result, ran_together
from .source import make_kernels

__all__ = ["Pair", "Result", "make_kernels", "ran_together"]
