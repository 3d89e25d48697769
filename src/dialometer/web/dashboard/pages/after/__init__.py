"""After the first answers: results, parts of them, copies for others, pay."""
