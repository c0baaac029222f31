"""Built-in targets: each module holds one of its own name, ``builtin:<module>``."""
