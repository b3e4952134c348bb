"""How users meet wulf: command line and Python."""
