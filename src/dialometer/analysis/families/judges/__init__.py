"""What judges say, and whether they can be trusted beside human raters."""
