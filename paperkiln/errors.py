"""The exceptions that a user is meant to see."""


class PaperkilnError(Exception):
    """What is wrong, where, and the mend, in one line; the CLI prints it and exits with 2."""


class Unreachable(PaperkilnError):
    """There is no way to the server: asking again, for another paper, is of no use."""
