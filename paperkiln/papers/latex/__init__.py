"""LaTeX to a Document: tokens, macros, the typeset text and its tables."""
