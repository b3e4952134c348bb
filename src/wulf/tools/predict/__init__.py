"""What another network would make of a program."""
