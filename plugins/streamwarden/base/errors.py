"""The exception for users: its message is a full sentence that names the cause and a fix."""

from streamwarden.base.addresses import masked


class StreamwardenError(Exception):
    """A problem that the user can fix. Shown as one line, never as a stack trace; the command line exits with 1.

    Credentials are removed from URLs in the message, because it is written to logs, rows, and pages.
    `excerpt` can be shown below it: a line of a file, and a caret under the position.
    """

    def __init__(self, text: str, excerpt: str = "") -> None:
        super().__init__(masked(text))
        self.excerpt = excerpt
