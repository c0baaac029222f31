"""The batched engine of the CPU backend: all programs of a launch evaluated together with numpy."""
