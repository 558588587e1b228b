"""The two APIs that must behave alike."""

from support.kube_apis import kube, kubeconfig, namespace, real

__all__ = ["kube", "kubeconfig", "namespace", "real"]
