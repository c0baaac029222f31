"""Arguments out of the ordinary: tensors in host memory, seeded generators."""

from __future__ import annotations

from hypothesis import strategies as st

from kcheck import plan
from kcheck.case import Tensor
from kcheck.objects import GeneratorValue
from kcheck.strategies.direct import direct
from kcheck.strategies.tensors import draw_seed


def host(drawn: st.SearchStrategy[Tensor]) -> st.SearchStrategy[Tensor]:
    """A tensor that lies in host memory, wherever the others lie: ``ks.host(ks.seq_lens(...))``.

    Its layout is drawn as ever, but no kernel reads it, so on a GPU nothing guards its memory. Draws and shrinks as
    the strategy inside.

    Args:
        drawn: What draws the tensor.
    """
    return _host(drawn)


@direct
def _host(draw: st.DrawFn, drawn: st.SearchStrategy[Tensor]) -> Tensor:
    tensor = draw(drawn)
    object.__setattr__(tensor, "host", True)  # the same object: the record of what was drawn knows it by identity
    return tensor


def generators() -> st.SearchStrategy[GeneratorValue]:
    """A ``torch.Generator`` on the device. Target and oracle each get one of their own, in the same state.

    One choice for the whole case, its seed. Shrinks towards seed 0.
    """
    return _generators()


@direct
def _generators(draw: st.DrawFn) -> GeneratorValue:
    return GeneratorValue(draw_seed(draw, plan.current()))
