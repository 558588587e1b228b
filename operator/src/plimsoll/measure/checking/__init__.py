"""May a trial's numbers be believed? The checks, and the values that they look at. Pure."""
