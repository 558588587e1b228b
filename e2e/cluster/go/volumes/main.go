// Volumes gives claims of one StorageClass directories on this node: on the node that the scheduler chose for the pod, one
// directory for each claim, removed with it. There is no helper pod: it runs on every worker, where the directories are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	nodeAnnotation        = "volume.kubernetes.io/selected-node"
	resync                = 30 * time.Second
	requestLimit          = 20 * time.Second
)

type volumes struct {
	client                   kubernetes.Interface
	provisioner, node, where string
	queue                    workqueue.TypedRateLimitingInterface[task]
	claims, persistent       cache.Indexer
}

// task is what may need something done: a claim, or a PersistentVolume, which has no namespace.
type task struct{ namespace, name string }

func main() {
	provisioner := flag.String("provisioner", "", "name that StorageClasses give")
	node := flag.String("node", os.Getenv("NODE"), "name of this node")
	where := flag.String("directory", "", "file system for the directories; nothing is made before it is mounted")
	flag.Parse()
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	v := &volumes{client: kubernetes.NewForConfigOrDie(config), provisioner: *provisioner, node: *node, where: *where}
	v.run(ctx)
}

func (v *volumes) run(ctx context.Context) {
	v.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[task](200*time.Millisecond, 5*time.Second))
	factory := informers.NewSharedInformerFactory(v.client, resync)
	claims := factory.Core().V1().PersistentVolumeClaims().Informer()
	persistent := factory.Core().V1().PersistentVolumes().Informer()
	v.claims, v.persistent = claims.GetIndexer(), persistent.GetIndexer()
	for _, informer := range []cache.SharedIndexInformer{claims, persistent} {
		changed := func(object any) {
			if found, ok := object.(metav1.Object); ok {
				v.queue.Add(task{found.GetNamespace(), found.GetName()})
			}
		}
		handler := cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }}
		if _, err := informer.AddEventHandler(handler); err != nil {
			log.Fatal(err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		v.queue.ShutDown()
	}()
	for {
		next, ended := v.queue.Get()
		if ended {
			return
		}
		if err := v.do(ctx, next); err != nil {
			log.Printf("%s/%s: %v", next.namespace, next.name, err)
			v.queue.AddRateLimited(next)
		} else {
			v.queue.Forget(next)
		}
		v.queue.Done(next)
	}
}

func (v *volumes) do(ctx context.Context, next task) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	if next.namespace == "" {
		found, exists, err := v.persistent.GetByKey(next.name)
		if err != nil || !exists {
			return err
		}
		return v.remove(ctx, found.(*corev1.PersistentVolume))
	}
	found, exists, err := v.claims.GetByKey(next.namespace + "/" + next.name)
	if err != nil || !exists {
		return err
	}
	return v.provision(ctx, found.(*corev1.PersistentVolumeClaim))
}

// provision makes the directory of a claim that waits for this node, and its volume, bound to the claim.
func (v *volumes) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	ours := claim.Annotations[provisionerAnnotation] == v.provisioner && claim.Annotations[nodeAnnotation] == v.node
	if !ours || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || claim.Spec.StorageClassName == nil {
		return nil
	}
	if claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		return v.complain(ctx, claim, "only volumeMode Filesystem is possible")
	}
	class, err := v.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	name := "pvc-" + string(claim.UID)
	path := filepath.Join(v.where, name)
	if err := v.makeDirectory(path); err != nil {
		return errors.Join(err, v.complain(ctx, claim, err.Error()))
	}
	_, err = v.client.CoreV1().PersistentVolumes().Create(ctx, v.volume(name, path, claim, class), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (v *volumes) makeDirectory(path string) error {
	var on, below syscall.Stat_t
	if err := errors.Join(syscall.Stat(v.where, &on), syscall.Stat(filepath.Dir(v.where), &below)); err != nil {
		return err
	}
	if on.Dev == below.Dev {
		return fmt.Errorf("nothing is mounted on %s of node %s", v.where, v.node)
	}
	if err := os.Mkdir(path, 0o777); err != nil && !os.IsExist(err) {
		return err
	}
	return os.Chmod(path, 0o777)
}

func (v *volumes) volume(
	name, path string, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass,
) *corev1.PersistentVolume {
	hostname := corev1.NodeSelectorRequirement{
		Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{v.node},
	}
	directory := corev1.HostPathDirectory
	terms := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{hostname}}}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": v.provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &directory},
			},
		},
	}
}

// remove removes the directory of a volume whose claim is gone, and then the volume.
func (v *volumes) remove(ctx context.Context, volume *corev1.PersistentVolume) error {
	ours := volume.Annotations["pv.kubernetes.io/provisioned-by"] == v.provisioner && v.isHere(volume)
	released := volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed
	if !ours || !released || volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	path := volume.Spec.HostPath.Path
	if path != filepath.Join(v.where, volume.Name) {
		return fmt.Errorf("%s is not the directory of %s", path, volume.Name)
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	err := v.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (v *volumes) isHere(volume *corev1.PersistentVolume) bool {
	affinity := volume.Spec.NodeAffinity
	if volume.Spec.HostPath == nil || affinity == nil || affinity.Required == nil {
		return false
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		for _, each := range term.MatchExpressions {
			if each.Key == corev1.LabelHostname && len(each.Values) == 1 && each.Values[0] == v.node {
				return true
			}
		}
	}
	return false
}

func (v *volumes) complain(ctx context.Context, claim *corev1.PersistentVolumeClaim, message string) error {
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: claim.Name + ".", Namespace: claim.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		},
		Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: message, Count: 1,
		Source: corev1.EventSource{Component: v.provisioner, Host: v.node}, FirstTimestamp: now, LastTimestamp: now,
	}
	_, err := v.client.CoreV1().Events(claim.Namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}
