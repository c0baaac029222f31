"""kcheck finds the bugs that GPU kernel test suites miss: it tests the layout of the tensors.

A target names a function that launches Triton kernels, its PyTorch oracle and a strategy of cases
(`kcheck.strategies`); ``kcheck fuzz`` runs it over layouts and checks every memory access.
"""

from kcheck.case import Case, Role
from kcheck.layout import LayoutKind
from kcheck.target import Target, target

__version__ = "0.1.0"
__all__ = ["Case", "LayoutKind", "Role", "Target", "__version__", "target"]
