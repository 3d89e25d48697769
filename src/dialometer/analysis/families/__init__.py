"""The families of analyses, one folder each; a design decides which of them speak."""
