"""Programs as raters: a language model walks through a study by the same screens as people, and is marked as a model."""
