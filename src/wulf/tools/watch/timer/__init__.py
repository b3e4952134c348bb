"""When something is to run by itself, and what says so: units of systemd, or lines of a crontab.  Pure."""
