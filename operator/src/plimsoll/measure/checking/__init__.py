"""The checks that decide whether a trial's numbers are trustworthy, and their values. Pure."""
