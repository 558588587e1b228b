"""A real API server, with pods that tests play."""

from support.kube_apis import apiserver, kubeconfig, namespace, real

__all__ = ["apiserver", "kubeconfig", "namespace", "real"]
