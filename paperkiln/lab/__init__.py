"""Measurements: evaluation, records, fingerprints, benchmarks."""
