"""A study of your own systems from the files of their outputs."""
