"""The paper's own words, where no run needs them."""
