"""The choices of a model (norm, activation, positions …): used, or only mentioned."""
