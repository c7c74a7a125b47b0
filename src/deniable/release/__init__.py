"""What may leave."""
