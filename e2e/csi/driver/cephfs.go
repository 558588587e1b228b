package main

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	subvolumeGroup = "csi"
	anybody        = "777" // pods may run as any user
)

// cephfs has subvolumes, which ceph-fuse mounts.
type cephfs struct{}

func (c *cephfs) supports(capability *csi.VolumeCapability) error {
	if capability.GetBlock() != nil {
		return status.Error(codes.InvalidArgument, "block volumes are not supported by CephFS")
	}
	return nil
}

func (c *cephfs) create(
	ctx context.Context, ceph *connection, volume *volume, bytes int64, parameters map[string]string,
) (map[string]string, error) {
	volume.pool = parameters["fsName"]
	if volume.pool == "" {
		return nil, status.Error(codes.InvalidArgument, "missing required field fsName in parameters")
	}
	if _, err := ceph.run(ctx, "ceph", "fs", "get", volume.pool); err != nil {
		return nil, internal("failed to get file system: %v", err)
	}
	if _, err := ceph.run(ctx, "ceph", "fs", "subvolumegroup", "create", volume.pool, subvolumeGroup); err != nil {
		return nil, internal("%v", err)
	}
	arguments := []string{
		"fs", "subvolume", "create", volume.pool, volume.name, strconv.FormatInt(bytes, 10),
		"--group_name", subvolumeGroup, "--mode", anybody,
	}
	if pool := parameters["pool"]; pool != "" {
		arguments = append(arguments, "--pool_layout", pool)
	}
	if _, err := ceph.run(ctx, "ceph", arguments...); err != nil {
		return nil, internal("%v", err)
	}
	path, err := ceph.run(ctx, "ceph", "fs", "subvolume", "getpath", volume.pool, volume.name, "--group_name", subvolumeGroup)
	if err != nil {
		return nil, internal("%v", err)
	}
	return map[string]string{
		"clusterID": volume.cluster, "fsName": volume.pool, "subvolumeName": volume.name,
		"subvolumePath": strings.TrimSpace(path),
	}, nil
}

func (c *cephfs) remove(ctx context.Context, ceph *connection, volume *volume) error {
	_, err := ceph.run(ctx, "ceph", "fs", "subvolume", "rm", volume.pool, volume.name, "--group_name", subvolumeGroup, "--force")
	if err != nil && !isAbsent(err) {
		return internal("%v", err)
	}
	return nil
}

func (c *cephfs) stage(ctx context.Context, ceph *connection, request *csi.NodeStageVolumeRequest, volume *volume) error {
	path := request.GetStagingTargetPath()
	if mounted, err := isMounted(path); err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	// With spliced replies, Linux 6.18 sometimes waits for ever for a page that ceph-fuse has long sent.
	_, err := command(ctx, "ceph-fuse", path, "--conf", ceph.configuration(), "--id", ceph.user, "--keyring", ceph.keyring(),
		"--client_fs", volume.pool, "-r", request.GetVolumeContext()["subvolumePath"],
		"--fuse_splice_write=false", "--fuse_splice_move=false")
	if err != nil {
		return internal("an error occurred while mounting the volume: %v", err)
	}
	return nil
}

// unstage ends ceph-fuse, too: it runs as long as its mount.
func (c *cephfs) unstage(ctx context.Context, _ *volume, path string) error {
	return unmount(ctx, path)
}
