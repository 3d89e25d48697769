"""Dialogues rated by those who held them."""
