"""A study as a form of another annotation tool, and its answers back; one file each."""
