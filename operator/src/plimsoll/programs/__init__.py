"""The programs that pods and `plimsoll run` start."""
