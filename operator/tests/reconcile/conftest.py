"""The two APIs that must behave alike."""

from support.kube_apis import apiserver, kube, kubeconfig, namespace, real

__all__ = ["apiserver", "kube", "kubeconfig", "namespace", "real"]
