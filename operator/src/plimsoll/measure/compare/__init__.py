"""Are two runs' numbers different? Statistics of comparing, and what follows from them. Pure."""
