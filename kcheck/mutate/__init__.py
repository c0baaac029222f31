"""Mutants of a target's kernels and of what launches them: how many do its cases and checks notice?

`reach` finds the functions, `syntax` turns changes of the syntax tree into edits of the text, `kernel` and `host` are
the changes, `mutants` gathers them, `campaign` runs them.
"""
