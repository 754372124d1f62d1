"""Generation with a KV cache, in numpy; sampling; chat."""
