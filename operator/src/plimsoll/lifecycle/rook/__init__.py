"""Storage in a Rook cluster: the objects of a run there, their status, and the provider."""
