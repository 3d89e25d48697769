"""Response generators: corpora prepared for training, four neural models, training, decoding and measures.

torch is imported only by the modules that compute with it.
"""
