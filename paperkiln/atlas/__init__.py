"""Many runs to knowledge: designs, sweeps, records, statistics and findings."""
