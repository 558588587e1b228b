"""A real API server, with pods that tests play."""

from support.kube_apis import kubeconfig, namespace, real

__all__ = ["kubeconfig", "namespace", "real"]
