"""Extraction measured on papers with known truth."""
