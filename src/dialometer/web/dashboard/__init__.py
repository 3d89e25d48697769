"""The experimenter's side: accounts, studies side by side, watching and steering them, making new ones."""
