"""Texts of systems as chat programs show them: Markdown with code, tables and mathematics, to HTML that cannot do anything."""
