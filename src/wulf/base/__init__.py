"""What everything stands on: records, units, texts, errors, files of a user, stored runs and formats."""
