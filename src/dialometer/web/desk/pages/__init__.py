"""The pages of the desk, one subject each; whatever stands here is found."""
