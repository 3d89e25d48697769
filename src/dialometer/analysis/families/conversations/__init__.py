"""Conversations rated by those who held them."""
