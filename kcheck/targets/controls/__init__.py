"""Kernels that are correct and tricky: each module holds one target of its own name."""
