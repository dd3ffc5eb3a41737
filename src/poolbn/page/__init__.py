"""The page of a network: its rows, words, drawing, numbers and tables."""
