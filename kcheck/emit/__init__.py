"""Writes stand-alone tests of findings: text that needs torch, Triton and the user's module, and no kcheck."""

from kcheck.emit.regression import QUOTED, RAISED, Form, Regression, check, render
from kcheck.emit.subject import Subject, subject
from kcheck.emit.verify import Trial, attempt, formatted

__all__ = [
    "QUOTED",
    "RAISED",
    "Form",
    "Regression",
    "Subject",
    "Trial",
    "attempt",
    "check",
    "formatted",
    "render",
    "subject",
]
