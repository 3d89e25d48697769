"""python -m dialometer: the command line without its script."""

from dialometer.cli import main

main()
