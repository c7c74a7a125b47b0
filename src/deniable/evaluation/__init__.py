"""What a release is worth: measures, a report in words and pictures, the paper's experiments."""
