"""fio on a volume or an image."""
