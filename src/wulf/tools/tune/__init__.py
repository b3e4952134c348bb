"""The tuning loop: change, measure a complete cycle, keep or undo."""
