"""The models, one file each; a new file is a new model."""
