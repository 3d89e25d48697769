"""Do the conclusions hold? Error rates, coverage and power of whole simulated studies; see ``python -m bench.calibrate``."""
