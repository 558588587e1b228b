"""Ceph, as far as it can be known without asking it: what its commands print, and what that means. Pure."""
