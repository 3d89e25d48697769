"""From a folder on disk to a study, and from a study to each rater's plan."""
