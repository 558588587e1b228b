"""A run's storage: providers of ordered lists of resources, and the walks along these lists."""
