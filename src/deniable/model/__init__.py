"""What is learnt, with noise."""
