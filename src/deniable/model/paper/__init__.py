"""The paper's model: structure from noisy entropies, parameters from noisy counts."""
