"""One folder for each tool: its work, its records, its page. No tool imports another."""
