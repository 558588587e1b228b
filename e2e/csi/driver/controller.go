package main

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const mebibyte = 1 << 20

// controller makes and removes volumes, on the orders of external-provisioner.
type controller struct {
	csi.UnimplementedControllerServer
	driver
}

func (c *controller) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	call := &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}
	capability := &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: call}}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{capability}}, nil
}

func (c *controller) CreateVolume(ctx context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	for _, capability := range request.GetVolumeCapabilities() {
		if err := c.storage.supports(capability); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
	}
	parameters := request.GetParameters()
	// external-provisioner names a volume after the UID of its claim.
	volume := &volume{cluster: parameters["clusterID"], name: "csi-vol-" + strings.TrimPrefix(request.GetName(), "pvc-")}
	done, err := c.busy.begin(volume.name)
	if err != nil {
		return nil, err
	}
	defer done()
	ceph, err := connect(c.clusters, volume.cluster, request.GetSecrets())
	if err != nil {
		return nil, err
	}
	defer ceph.close()
	bytes := (request.GetCapacityRange().GetRequiredBytes() + mebibyte - 1) / mebibyte * mebibyte
	known, err := c.storage.create(ctx, ceph, volume, bytes, parameters)
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{
		Volume: &csi.Volume{VolumeId: volume.id(), CapacityBytes: bytes, VolumeContext: known},
	}, nil
}

func (c *controller) DeleteVolume(ctx context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	err := c.with(request.GetVolumeId(), request.GetSecrets(), func(ceph *connection, volume *volume) error {
		return c.storage.remove(ctx, ceph, volume)
	})
	if err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (c *controller) ValidateVolumeCapabilities(
	_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	for _, capability := range request.GetVolumeCapabilities() {
		if err := c.storage.supports(capability); err != nil {
			return &csi.ValidateVolumeCapabilitiesResponse{Message: err.Error()}, nil
		}
	}
	confirmed := &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: request.GetVolumeCapabilities()}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: confirmed}, nil
}
