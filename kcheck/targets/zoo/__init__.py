"""Pairs of a kernel that is right and one that is wrong: each module holds `<name>` and `<name>_wrong`."""
