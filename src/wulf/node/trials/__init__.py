"""Trials: measuring under one setting and another, in turn, with everything put back."""
