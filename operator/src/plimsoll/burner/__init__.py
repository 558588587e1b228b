"""The helper that runs kube-burner in a namespace of its own, and removes everything that kube-burner creates."""
