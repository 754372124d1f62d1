"""The family that a paper says its model takes over, and what is inherited."""
