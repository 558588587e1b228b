"""HTTP servers on networks with untrusted peers: the number and time of unauthenticated connections are bounded."""
