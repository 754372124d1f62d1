"""How the model was trained, as far as the paper says it."""
