"""Who may do what: accounts, secrets and codes, and how often somebody may try."""
