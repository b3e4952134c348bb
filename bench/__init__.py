"""Comparisons that back every claim about speed, memory and accuracy: ``make bench NAME=x``."""
