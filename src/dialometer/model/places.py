"""Names that files have in a study's folder, wherever one is opened."""

DATABASE_FILE = "study.db"
"""The database that lies beside a study unless another one is named."""
SIMULATION_FILE = "simulation.json"
"""The truth that simulated raters saw."""
