"""The one exception that is meant for people: its text is a whole sentence that names the culprit and the way out."""


class StreamwardenError(Exception):
    """A problem the user can mend. Shown as one line, never as a stack trace; the command line exits with 1."""
