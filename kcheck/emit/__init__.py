"""Writes stand-alone tests of findings: text that needs torch, Triton and the user's module, and no kcheck."""

from kcheck.emit.regression import RAISED, Form, Regression, check, render
from kcheck.emit.subject import Subject, subject
from kcheck.emit.verify import Trial, attempt, formatted

__all__ = ["RAISED", "Form", "Regression", "Subject", "Trial", "attempt", "check", "formatted", "render", "subject"]
