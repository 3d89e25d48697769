"""``make attack``: what once broke the server, tried again against a real one on loopback."""
