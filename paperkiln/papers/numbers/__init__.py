"""The numbers of a model: from quantities and terms to values with verdicts."""
