"""What every analysis starts from: the data, its measures, the wording of numbers, and the choice of the analysis."""
