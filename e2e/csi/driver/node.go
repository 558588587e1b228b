package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nodes makes volumes usable on one node, on the orders of its kubelet.
type nodes struct {
	csi.UnimplementedNodeServer
	driver
	node string
}

func (n *nodes) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.node}, nil
}

func (n *nodes) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	call := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}
	capability := &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: call}}
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{capability}}, nil
}

func (n *nodes) NodeStageVolume(
	ctx context.Context, request *csi.NodeStageVolumeRequest,
) (*csi.NodeStageVolumeResponse, error) {
	err := n.with(request.GetVolumeId(), request.GetSecrets(), func(ceph *connection, volume *volume) error {
		return n.storage.stage(ctx, ceph, request, volume)
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

func (n *nodes) NodeUnstageVolume(
	ctx context.Context, request *csi.NodeUnstageVolumeRequest,
) (*csi.NodeUnstageVolumeResponse, error) {
	volume, err := volumeOf(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	done, err := n.busy.begin(volume.name)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := n.storage.unstage(ctx, volume, request.GetStagingTargetPath()); err != nil {
		return nil, internal("%v", err)
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (n *nodes) NodePublishVolume(
	ctx context.Context, request *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	staged, target := request.GetStagingTargetPath(), request.GetTargetPath()
	var err error
	if request.GetVolumeCapability().GetBlock() != nil {
		err = bindFile(ctx, deviceFile(staged), target)
	} else {
		err = bindDirectory(ctx, staged, target)
	}
	if err == nil && request.GetReadonly() {
		_, err = command(ctx, "mount", "-o", "remount,bind,ro", target)
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *nodes) NodeUnpublishVolume(
	ctx context.Context, request *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if err := unmount(ctx, target); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := os.Remove(target); err != nil && !os.IsNotExist(err) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// deviceFile is where the device of a staged block volume is.
func deviceFile(staged string) string { return filepath.Join(staged, "device") }

func bindDirectory(ctx context.Context, source, target string) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	return bind(ctx, source, target)
}

func bindFile(ctx context.Context, source, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	file, err := os.OpenFile(target, os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return bind(ctx, source, target)
}

func bind(ctx context.Context, source, target string) error {
	if mounted, err := isMounted(target); err != nil || mounted {
		return err
	}
	_, err := command(ctx, "mount", "--bind", source, target)
	return err
}

// mountFileSystem mounts the file system of a device; it makes one on a device without any.
func mountFileSystem(ctx context.Context, device, path string, mount *csi.VolumeCapability_MountVolume) error {
	if mounted, err := isMounted(path); err != nil || mounted {
		return err
	}
	kind := mount.GetFsType()
	if kind == "" {
		kind = "ext4"
	}
	// Its exit code is 2 if it finds nothing.
	found, err := command(ctx, "blkid", "--probe", "--match-tag", "TYPE", "--output", "value", device)
	if err != nil && !isAbsent(err) {
		return status.Error(codes.Internal, err.Error())
	}
	if strings.TrimSpace(found) == "" {
		if _, err := command(ctx, "mkfs."+kind, formatOptions(kind, device)...); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	arguments := []string{"-t", kind}
	if options := mount.GetMountFlags(); len(options) > 0 {
		arguments = append(arguments, "-o", strings.Join(options, ","))
	}
	if _, err := command(ctx, "mount", append(arguments, device, path)...); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func formatOptions(kind, device string) []string {
	if kind == "ext4" {
		return []string{"-m0", "-Enodiscard,lazy_itable_init=1,lazy_journal_init=1", device}
	}
	return []string{device}
}

// unmount removes all mounts of a path.
func unmount(ctx context.Context, path string) error {
	for {
		mounted, err := isMounted(path)
		if err != nil || !mounted {
			return err
		}
		if _, err := command(ctx, "umount", path); err != nil {
			return err
		}
	}
}

// isMounted returns whether something is mounted on a path, also if that does not answer.
func isMounted(path string) (bool, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true, nil
		}
	}
	return false, nil
}
