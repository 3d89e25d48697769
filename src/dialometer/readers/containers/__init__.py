"""What files of dialogues are wrapped in: encodings, compression, Parquet and Arrow, spreadsheets, arrays."""
