"""The one exception that is meant for people: its text is a whole sentence that names the culprit and the way out."""

from streamwarden.base.addresses import masked


class StreamwardenError(Exception):
    """A problem the user can mend. Shown as one line, never as a stack trace; the command line exits with 1.

    URLs stand in it without credentials, whoever wrote it: it goes to logs, rows and pages.
    `excerpt` is what may be shown below it: the line of a file and a caret under the place.
    """

    def __init__(self, text: str, excerpt: str = "") -> None:
        super().__init__(masked(text))
        self.excerpt = excerpt
