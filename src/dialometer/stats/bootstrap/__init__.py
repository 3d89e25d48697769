"""Bootstrap intervals and means with bootstrap intervals."""
