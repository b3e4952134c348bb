"""The procedures: stages put together into what a user asks for."""
