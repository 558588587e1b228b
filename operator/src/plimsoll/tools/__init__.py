"""One module per tool, or a package for fio: parameters -> command, output -> measurement. Pure."""
