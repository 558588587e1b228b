"""The checks that decide whether the numbers of a trial can be trusted. Pure."""
