"""The one exception a user is meant to see."""


class PaperkilnError(Exception):
    """What is wrong, where, and the mend, in one line; the CLI prints it and exits with 2."""
