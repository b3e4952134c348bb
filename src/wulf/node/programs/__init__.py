"""Programs that come with wulf or belong to the user: built, put on the nodes, loaded before others."""
