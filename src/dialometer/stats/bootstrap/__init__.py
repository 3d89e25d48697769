"""Resampling: intervals of any statistic, and means with such intervals."""
