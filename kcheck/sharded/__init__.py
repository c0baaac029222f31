"""A run in several shards, each in a process of its own, here or on other machines, told as one."""
