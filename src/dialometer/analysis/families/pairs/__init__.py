"""Controlled transcript pairs: does an interaction strategy change what raters prefer?"""
