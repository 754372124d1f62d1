"""paperkiln: from a paper to its architecture, trained, exported and talked to."""

__version__ = "0.1.0"
