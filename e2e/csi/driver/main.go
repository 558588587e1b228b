// A CSI driver for the end-to-end tests: real RBD images and CephFS subvolumes, without kernel modules. See ../README.md.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// storage is what differs between RBD and CephFS.
type storage interface {
	// create makes a volume, or finds it again, and returns what the nodes have to know.
	create(ctx context.Context, ceph *connection, volume *volume, bytes int64, parameters map[string]string) (map[string]string, error)
	// remove removes a volume; one that does not exist is removed.
	remove(ctx context.Context, ceph *connection, volume *volume) error
	// supports returns why a volume cannot be used like this.
	supports(capability *csi.VolumeCapability) error
	// stage makes a volume usable on this node, at a path.
	stage(ctx context.Context, ceph *connection, request *csi.NodeStageVolumeRequest, volume *volume) error
	// unstage undoes that, however much of it was done.
	unstage(ctx context.Context, volume *volume, path string) error
}

func main() {
	log.SetFlags(log.LUTC | log.LstdFlags)
	kind := flag.String("kind", "", "rbd or cephfs")
	name := flag.String("name", "", "the driver's name, by which StorageClasses name it")
	socket := flag.String("socket", "", "socket of this driver, in its own file system")
	clusters := flag.String("clusters", "", "file that lists the monitors of each clusterID")
	node := flag.String("node", os.Getenv("NODE"), "name of this node; empty for the part that makes and removes volumes")
	registry := flag.String("registry", "", "kubelet's directory for sockets of plugins, in the driver's file system")
	kubelet := flag.String("kubelet-socket", "", "the driver's socket in the file system of the kubelet")
	flag.Parse()

	volumes, found := map[string]storage{"rbd": &rbd{state: "/run/volumes"}, "cephfs": &cephfs{}}[*kind]
	if !found {
		log.Fatalf("-kind is %q: it has to be rbd or cephfs", *kind)
	}
	shared := driver{name: *name, clusters: *clusters, storage: volumes, busy: newBusy()}
	server := grpc.NewServer(grpc.UnaryInterceptor(logged))
	csi.RegisterIdentityServer(server, &identity{driver: shared})
	if *node == "" {
		csi.RegisterControllerServer(server, &controller{driver: shared})
	} else {
		csi.RegisterNodeServer(server, &nodes{driver: shared, node: *node})
	}
	stopped := make(chan error, 2)
	go func() { stopped <- serve(server, *socket) }()
	if *node != "" {
		plugins := grpc.NewServer()
		registration.RegisterRegistrationServer(plugins, &registrar{name: *name, endpoint: *kubelet})
		go func() { stopped <- serve(plugins, *registry+"/"+*name+"-reg.sock") }()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	select {
	case err := <-stopped:
		log.Fatal(err)
	case <-ctx.Done():
		server.GracefulStop()
	}
}
