// kstatus reads a Kubernetes object as JSON and prints what Flux, kpt and Argo's kin make of it: the status that the
// library they share computes, and why.
package main

import (
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	object := &unstructured.Unstructured{}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	if err := object.UnmarshalJSON(text); err != nil {
		fail(err)
	}
	result, err := status.Compute(object)
	if err != nil {
		fail(err)
	}
	fmt.Printf("%s\t%s\n", result.Status, result.Message)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kstatus:", err)
	os.Exit(1)
}
