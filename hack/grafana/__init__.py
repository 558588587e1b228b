"""The dashboards as code: one module for each, and what they have in common."""
