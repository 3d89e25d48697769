"""Tables, curves and reports on evaluators."""
