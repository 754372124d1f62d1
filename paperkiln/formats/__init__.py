"""Files that other programs open: safetensors, GGUF, Hugging Face folders."""
