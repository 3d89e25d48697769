"""Names of the files in a study's folder."""

STUDY_FILE = "study.yaml"
"""The study file."""
DATABASE_FILE = "study.db"
"""The database of a study, unless another one is named."""
SIMULATION_FILE = "simulation.json"
"""The truth that simulated raters saw."""
