"""The pages of the dashboard, one subject each; every file here is found."""
