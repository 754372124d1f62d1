"""A paper's source: what names it, where it comes from, what is in it."""
