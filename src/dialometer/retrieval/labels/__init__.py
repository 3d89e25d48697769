"""Which answers are right: marks of the maker, ratings of the crowd, and where they disagree."""
