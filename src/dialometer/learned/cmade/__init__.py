"""CMADE as published: an encoder trained in three stages."""
