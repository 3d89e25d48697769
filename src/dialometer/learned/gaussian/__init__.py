"""The best recipe: a Gaussian process over words, behaviour and meaning."""
