"""The server: settings, requests, limits, security, logs, submissions, and running it."""
