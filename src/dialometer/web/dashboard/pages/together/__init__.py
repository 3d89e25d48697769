"""Working together: accounts, comments, reviewers, and who did what."""
