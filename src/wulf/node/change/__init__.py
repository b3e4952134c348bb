"""Changes on nodes: how a setting is reached, the guard that undoes it, what makes it last."""
