"""A real API server, which reviews tokens."""

from support.kube_apis import kubeconfig, namespace, real

__all__ = ["kubeconfig", "namespace", "real"]
