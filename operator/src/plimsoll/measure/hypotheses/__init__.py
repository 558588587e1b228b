"""Do results show what a user expected? Hypotheses, decided on confidence intervals. Pure."""
