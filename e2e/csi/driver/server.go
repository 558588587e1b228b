package main

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driver is what the services have in common.
type driver struct {
	name     string
	clusters string
	storage  storage
	busy     *busy
}

func serve(server *grpc.Server, socket string) error {
	// The socket of an earlier process.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	return server.Serve(listener)
}

// logged writes calls that change something, and how they end; never the secrets in them.
func logged(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	begin := time.Now()
	response, err := handle(ctx, request)
	if named, ok := request.(interface{ GetVolumeId() string }); ok || err != nil {
		id := ""
		if ok {
			id = named.GetVolumeId()
		}
		log.Printf("%s %s: %.1f s, %v", info.FullMethod, id, time.Since(begin).Seconds(), err)
	}
	return response, err
}

// busy has the volumes that a call is working on: the callers repeat their calls while earlier ones still run.
type busy struct {
	lock    sync.Mutex
	volumes map[string]bool
}

func newBusy() *busy { return &busy{volumes: map[string]bool{}} }

// begin reserves a volume and returns how to release it.
func (b *busy) begin(volume string) (func(), error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.volumes[volume] {
		return nil, status.Errorf(codes.Aborted, "an operation with the given Volume ID %s already exists", volume)
	}
	b.volumes[volume] = true
	return func() {
		b.lock.Lock()
		defer b.lock.Unlock()
		delete(b.volumes, volume)
	}, nil
}

// with calls a function with a volume and a connection to its cluster, unless another call is working on the volume.
func (d *driver) with(id string, secret map[string]string, do func(*connection, *volume) error) error {
	volume, err := volumeOf(id)
	if err != nil {
		return err
	}
	done, err := d.busy.begin(volume.name)
	if err != nil {
		return err
	}
	defer done()
	ceph, err := connect(d.clusters, volume.cluster, secret)
	if err != nil {
		return err
	}
	defer ceph.close()
	return do(ceph, volume)
}

type identity struct {
	csi.UnimplementedIdentityServer
	driver
}

func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.name, VendorVersion: "e2e"}, nil
}

func (i *identity) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	service := &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}
	capability := &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: service}}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{capability}}, nil
}

func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// registrar tells the kubelet where the driver listens, which otherwise the program node-driver-registrar does.
type registrar struct {
	registration.UnimplementedRegistrationServer
	name     string
	endpoint string
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *registrar) NotifyRegistrationStatus(
	_ context.Context, result *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !result.PluginRegistered {
		log.Printf("the kubelet refuses the driver: %s", result.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
