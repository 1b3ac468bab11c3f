"""The one error that reaches the command line."""

from __future__ import annotations


class ToolError(Exception):
    """One line: the file or option, what was found, what was wanted. Exit code 2."""
