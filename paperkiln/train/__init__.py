"""From a spec and a corpus to a trained model: data, optimisers, loop, checkpoints, events."""
