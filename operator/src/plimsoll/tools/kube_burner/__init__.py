"""kube-burner: how fast a cluster binds claims and starts the pods that mount them."""
