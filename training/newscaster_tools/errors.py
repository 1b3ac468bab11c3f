"""The one error that reaches the command line."""

from __future__ import annotations

MAX_LENGTH = 600


class ToolError(Exception):
    """One line: the file or option, what was found, what was wanted. Exit code 2.

    Messages quote names of foreign files: whatever is not printable is shown as an escape.
    """

    def __init__(self, message: str) -> None:
        line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
        super().__init__(line if len(line) <= MAX_LENGTH else f"{line[: MAX_LENGTH - 3]}...")
