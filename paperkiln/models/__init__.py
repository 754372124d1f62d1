"""The decoder family: one model, many configurations."""
