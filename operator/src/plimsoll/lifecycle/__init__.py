"""From a run and what is observed of it to what is to be done next. Pure."""
