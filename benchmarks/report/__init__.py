"""What is left of a run: lines of medians and ratios, as a table, Markdown, JSON and a picture."""
