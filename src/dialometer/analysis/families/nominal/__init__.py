"""Criteria answered by one of several categories without order: dialogue acts, types of error."""
