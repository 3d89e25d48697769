"""Names of the files in a study's folder."""

DATABASE_FILE = "study.db"
"""The database of a study, unless another one is named."""
SIMULATION_FILE = "simulation.json"
"""The truth that simulated raters saw."""
