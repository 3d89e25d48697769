"""Models of retrieval that are trained: tuned encoders, rankers, classifiers of pairs."""
