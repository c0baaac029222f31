"""Built-in targets, named ``builtin:<name>``: `registry` lists them."""
