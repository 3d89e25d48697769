"""Making and running a study."""
