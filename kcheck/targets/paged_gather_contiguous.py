"""``builtin:paged_gather_contiguous``: the founding bug repaired by a copy of the block table. Correct.

In a contiguous table the width is the row stride. The price is an allocation and a copy in every call;
``kcheck compare builtin:paged_gather builtin:paged_gather_contiguous`` shows it.
"""

from __future__ import annotations

import torch

from kcheck.targets.paged_gather import declare, launch


@declare
def paged_gather_contiguous(
    out: torch.Tensor,
    pool: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    gather_lens: torch.Tensor | None,
    block_size: int,
    row_start: int,
) -> None:
    """Makes the table contiguous, then steps from one row to the next by the number of its columns."""
    table = block_table.contiguous()
    launch(
        out,
        pool,
        table,
        seq_lens,
        gather_lens,
        block_size,
        row_start,
        table_request_stride=table.shape[-1],
    )
