"""The recipe ``best``: a Gaussian process over words, behaviour and meaning."""
