"""The programs that pods and `plimsoll run` start, each with a module of its own."""
