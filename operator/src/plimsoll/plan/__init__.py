"""From a specification to the frozen plan: points, order, seeds, estimates. Pure."""
