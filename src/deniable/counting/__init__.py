"""Count rows: contingency tables and prefix counts. The only access the model has to the data."""
