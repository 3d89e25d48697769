"""Rankings of systems: Bradley-Terry, Elo, best-worst scaling."""
