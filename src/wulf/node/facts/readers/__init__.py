"""What a capture says, one subject in a file; a reader is listed in `wulf.node.facts.parse`."""
