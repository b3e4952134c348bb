"""Arrays in, intervals out: statistics, estimates, models and predictions. Pure."""
