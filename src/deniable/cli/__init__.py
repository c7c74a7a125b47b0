"""The command line. Heavy things are imported where they are used, so that --help is quick."""
