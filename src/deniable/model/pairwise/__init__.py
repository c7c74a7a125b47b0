"""The default model: a Bayesian network fitted to noisy one-way and two-way tables."""
