package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const exportLimit = 30 * time.Second

// rbd has images. On a node each is exported as a file by a process of QEMU, in user space, and a loop device on that file
// is the block device.
type rbd struct {
	state string // directory of what is staged on this node
}

func (r *rbd) supports(capability *csi.VolumeCapability) error {
	mode := capability.GetAccessMode().GetMode()
	if capability.GetBlock() == nil && mode == csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER {
		return errors.New("multi node access modes are only supported on rbd `block` type volumes")
	}
	return nil
}

func (r *rbd) create(
	ctx context.Context, ceph *connection, volume *volume, bytes int64, parameters map[string]string,
) (map[string]string, error) {
	volume.pool = parameters["pool"]
	if volume.pool == "" {
		return nil, status.Error(codes.InvalidArgument, "missing required parameter pool")
	}
	for _, pool := range []string{volume.pool, parameters["dataPool"]} {
		if err := poolExists(ctx, ceph, pool); err != nil {
			return nil, err
		}
	}
	arguments := []string{"create", r.image(volume), "--size", strconv.FormatInt(bytes, 10) + "B"}
	if features := parameters["imageFeatures"]; features != "" {
		arguments = append(arguments, "--image-feature", features)
	}
	if pool := parameters["dataPool"]; pool != "" {
		arguments = append(arguments, "--data-pool", pool)
	}
	_, err := ceph.run(ctx, "rbd", arguments...)
	var ended *commandError
	if errors.As(err, &ended) && ended.code == int(syscall.EEXIST) {
		err = r.checkSize(ctx, ceph, volume, bytes)
	}
	if err != nil {
		return nil, internal("failed to create rbd image: (%v)", err)
	}
	return map[string]string{
		"clusterID": volume.cluster, "pool": volume.pool, "imageName": volume.name,
		"imageFeatures": parameters["imageFeatures"], "dataPool": parameters["dataPool"],
	}, nil
}

func poolExists(ctx context.Context, ceph *connection, pool string) error {
	if pool == "" {
		return nil
	}
	_, err := ceph.run(ctx, "ceph", "osd", "pool", "get", pool, "size")
	if isAbsent(err) {
		return status.Errorf(codes.Internal, "pool not found: pool (%s) not found in Ceph cluster", pool)
	}
	return err
}

// checkSize refuses an image that an earlier call made with another size.
func (r *rbd) checkSize(ctx context.Context, ceph *connection, volume *volume, bytes int64) error {
	output, err := ceph.run(ctx, "rbd", "info", r.image(volume), "--format", "json")
	if err != nil {
		return err
	}
	var found struct {
		Size int64 `json:"size"`
	}
	if err := json.Unmarshal([]byte(output), &found); err != nil {
		return err
	}
	if found.Size != bytes {
		return status.Errorf(codes.AlreadyExists, "image %s exists with %d bytes instead of %d", volume.name, found.Size, bytes)
	}
	return nil
}

func (r *rbd) image(volume *volume) string { return volume.pool + "/" + volume.name }

// remove moves an image to the trash, and then removes it from there: what a killed call leaves is found in the trash.
func (r *rbd) remove(ctx context.Context, ceph *connection, volume *volume) error {
	used, err := r.isUsed(ctx, ceph, volume)
	switch {
	case isAbsent(err):
		return r.removeFromTrash(ctx, ceph, volume)
	case err != nil:
		return internal("%v", err)
	case used:
		return status.Errorf(codes.Internal, "rbd %s is still being used", volume.name)
	}
	if _, err := ceph.run(ctx, "rbd", "trash", "mv", r.image(volume)); err != nil {
		return internal("%v", err)
	}
	return r.removeFromTrash(ctx, ceph, volume)
}

func (r *rbd) isUsed(ctx context.Context, ceph *connection, volume *volume) (bool, error) {
	output, err := ceph.run(ctx, "rbd", "status", r.image(volume), "--format", "json")
	if err != nil {
		return false, err
	}
	var found struct {
		Watchers []json.RawMessage `json:"watchers"`
	}
	if err := json.Unmarshal([]byte(output), &found); err != nil {
		return false, err
	}
	return len(found.Watchers) > 0, nil
}

func (r *rbd) removeFromTrash(ctx context.Context, ceph *connection, volume *volume) error {
	output, err := ceph.run(ctx, "rbd", "trash", "ls", volume.pool, "--format", "json")
	if isAbsent(err) { // the pool is gone
		return nil
	}
	if err != nil {
		return internal("%v", err)
	}
	var trash []struct{ ID, Name string }
	if err := json.Unmarshal([]byte(output), &trash); err != nil {
		return internal("%v", err)
	}
	for _, found := range trash {
		if found.Name != volume.name {
			continue
		}
		if _, err := ceph.run(ctx, "rbd", "trash", "rm", volume.pool+"/"+found.ID); err != nil && !isAbsent(err) {
			return internal("%v", err)
		}
	}
	return nil
}

func (r *rbd) stage(ctx context.Context, ceph *connection, request *csi.NodeStageVolumeRequest, volume *volume) error {
	device, err := r.attach(ctx, ceph, volume)
	if err != nil {
		return internal("%v", err)
	}
	path := request.GetStagingTargetPath()
	mount := request.GetVolumeCapability().GetMount()
	if mount == nil {
		return bindFile(ctx, device, deviceFile(path))
	}
	return mountFileSystem(ctx, device, path, mount)
}

func (r *rbd) unstage(ctx context.Context, volume *volume, path string) error {
	for _, mounted := range []string{deviceFile(path), path} {
		if err := unmount(ctx, mounted); err != nil {
			return err
		}
	}
	if err := os.Remove(deviceFile(path)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return r.detach(ctx, volume)
}

// attached is where an image is exported.
type attached struct{ directory string }

func (r *rbd) at(volume *volume) attached {
	return attached{filepath.Join(r.state, volume.pool, volume.name)}
}

func (a attached) file() string          { return filepath.Join(a.directory, "image") }
func (a attached) process() string       { return filepath.Join(a.directory, "pid") }
func (a attached) device() string        { return filepath.Join(a.directory, "device") }
func (a attached) configuration() string { return filepath.Join(a.directory, "ceph") }

// attach returns the block device of an image; it makes what of it is missing.
func (r *rbd) attach(ctx context.Context, ceph *connection, volume *volume) (string, error) {
	here := r.at(volume)
	if device, err := os.ReadFile(here.device()); err == nil {
		return string(device), nil
	}
	// Of an earlier call that ended halfway.
	if err := r.detach(ctx, volume); err != nil {
		return "", err
	}
	if err := os.MkdirAll(here.directory, 0o700); err != nil {
		return "", err
	}
	if err := r.export(ctx, ceph, volume, here); err != nil {
		return "", err
	}
	// Direct I/O on this file corrupts the file system on the device. The sectors are as large as those of the export.
	device, err := command(ctx, "losetup", "--direct-io=off", "--sector-size", "4096", "--find", "--show", here.file())
	if err != nil {
		return "", err
	}
	device = strings.TrimSpace(device)
	return device, os.WriteFile(here.device(), []byte(device), 0o600)
}

// export starts QEMU's daemon, which needs the keyring for as long as it runs. It does not cache: the pool's counters are to
// show all reads and writes of the device that reach this file.
func (r *rbd) export(ctx context.Context, ceph *connection, volume *volume, here attached) error {
	kept := &connection{user: ceph.user, monitors: ceph.monitors, directory: here.configuration()}
	key, err := os.ReadFile(ceph.keyring())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(kept.directory, 0o700); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(kept.keyring(), key, 0o600), kept.configure(), os.WriteFile(here.file(), nil, 0o600)); err != nil {
		return err
	}
	image := fmt.Sprintf("driver=rbd,node-name=image,pool=%s,image=%s,user=%s,conf=%s,discard=unmap,cache.direct=on",
		volume.pool, volume.name, ceph.user, kept.configuration())
	fuse := "type=fuse,id=export,node-name=image,writable=on,allow-other=on,mountpoint=" + here.file()
	limited, cancel := context.WithTimeout(ctx, exportLimit)
	defer cancel()
	_, err = command(limited, "qemu-storage-daemon", "--daemonize", "--pidfile", here.process(),
		"--blockdev", image, "--export", fuse)
	return err
}

// detach ends a device and its export, however much of them there is.
func (r *rbd) detach(ctx context.Context, volume *volume) error {
	here := r.at(volume)
	devices, err := command(ctx, "losetup", "--noheadings", "--output", "NAME", "--associated", here.file())
	if err != nil && !isMissingFile(here.file()) {
		return err
	}
	for _, device := range strings.Fields(devices) {
		if _, err := command(ctx, "losetup", "--detach", device); err != nil {
			return err
		}
	}
	if err := endProcess(ctx, here.process()); err != nil {
		return err
	}
	return os.RemoveAll(here.directory)
}

func isMissingFile(path string) bool {
	_, err := os.Stat(path)
	return os.IsNotExist(err)
}

// endProcess ends the process of a file with its number, and returns when it is gone.
func endProcess(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	process, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if err := syscall.Kill(process, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	for !errors.Is(syscall.Kill(process, 0), syscall.ESRCH) {
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// internal returns an error that external-provisioner and kubelet report as it is, unless it has a code already.
func internal(format string, err error) error {
	if _, coded := status.FromError(err); coded {
		return err
	}
	return status.Errorf(codes.Internal, format, err)
}
