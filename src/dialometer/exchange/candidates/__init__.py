"""Answers to questions in imported tables: their columns, their texts, and finding them in a study."""
