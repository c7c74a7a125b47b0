"""Models learnt with noise: Bayesian networks, how they are fitted, and how they are drawn from."""
