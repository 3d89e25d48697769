"""Translations of a study to translators' tools and back: PO of gettext, and XLIFF 1.2."""
