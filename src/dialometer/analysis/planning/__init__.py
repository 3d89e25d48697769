"""Before the data: power and preregistration."""
