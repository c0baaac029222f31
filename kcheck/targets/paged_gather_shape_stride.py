"""``builtin:paged_gather_shape_stride``: the kernel of `paged_gather`, launched with a wrong stride of the table.

The distance between two rows of the block table is taken from its width. In ``table[:, :k]`` of a wider table the rows
are further apart: request 0 is right, every later one gathers other pages.
"""

from __future__ import annotations

import torch

from kcheck.targets.paged_gather import declare, launch


@declare
def paged_gather_shape_stride(
    out: torch.Tensor,
    pool: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor | None,
    block_size: int,
    row_start: int,
) -> None:
    """Steps from one row of the table to the next by the number of its columns."""
    launch(
        out,
        pool,
        block_table,
        seq_lens,
        gather_lens,
        block_size,
        row_start,
        table_request_stride=block_table.shape[-1],
    )
