"""From a paper to its architecture: read, extract, emit; the standard library only."""
