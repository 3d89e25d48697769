"""What a study gave: reports, exports, archives."""
