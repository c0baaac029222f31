"""The operators of operators.py in bfloat16: the same calls, oracles and cases."""
# mypy: ignore-errors

import importlib.util
from dataclasses import replace
from pathlib import Path

from kcheck.target import Target

_spec = importlib.util.spec_from_file_location("liger_operators_bf16", Path(__file__).with_name("operators.py"))
operators = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(operators)
operators.DTYPE = "bfloat16"  # strategies look it up when they draw

# Differences of numbers that are kept in bfloat16, whose units in the last place are 2**-8 of their size.
PROBABILITIES = {"rtol": 1.6e-2, "atol": 2**-7}
LOOSER = {
    # The backward pass has the softmax y as it was returned, and y·dy minus the row's sum of y·dy cancels.
    "softmax": PROBABILITIES,
    # The target makes the probabilities, or their logarithms of size 4, before it calls the operator; a loss sums up
    # how far two of them are apart.
    "tvd": PROBABILITIES,
    "kl_div": {"rtol": 1.6e-2, "atol": 2**-6},
    "jsd": {"rtol": 1.6e-2, "atol": 2**-6},
    # The programs add what they have of the gradients of w and b, up to 33 terms of size 1, to bfloat16 by atomics:
    # each addition may lose half a unit in the last place of a number as large as 33, and the mean is in bfloat16 too.
    "group_norm": {"rtol": 1.6e-2, "atol": 0.25},
    # The forward pass makes powers of x in bfloat16 (the backward pass does not), and the gradient of x has the cube
    # of what it keeps, in terms of size 3 and more that cancel.
    "poly_norm": {"rtol": 1.6e-2, "atol": 0.125},
}
WRONG = ("cross_entropy_transposed", "rope_one_token")  # as in float32

globals().update(
    (name, replace(target, name=f"{name}_bf16", **LOOSER.get(name, {})))
    for name, target in vars(operators).items()
    if isinstance(target, Target) and name not in WRONG
)
