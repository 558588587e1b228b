"""A real API server, which reviews tokens."""

from support.kube_apis import apiserver, kubeconfig, namespace, real

__all__ = ["apiserver", "kubeconfig", "namespace", "real"]
