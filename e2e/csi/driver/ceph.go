package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// volume names a volume. Its ID holds everything that is needed to remove it, because the StorageClass may be gone by then.
type volume struct {
	cluster string
	pool    string // of an image's header, or the name of a file system
	name    string
}

func (v *volume) id() string { return strings.Join([]string{v.cluster, v.pool, v.name}, "/") }

func volumeOf(id string) (*volume, error) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		return nil, status.Errorf(codes.InvalidArgument, "volume ID %q has not three parts", id)
	}
	return &volume{cluster: parts[0], pool: parts[1], name: parts[2]}, nil
}

// connection runs Ceph's programs as the user of a Secret.
type connection struct {
	user      string
	monitors  string
	directory string // of its configuration and keyring
}

// connect prepares a connection to the cluster that a StorageClass names, as the user of its Secret.
func connect(clusters, id string, secret map[string]string) (*connection, error) {
	monitors, err := monitorsOf(clusters, id)
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "failed to fetch monitor list using clusterID (%s): %v", id, err)
	}
	user, key := secret["userID"], secret["userKey"]
	if user == "" {
		user, key = secret["adminID"], secret["adminKey"]
	}
	if user == "" || key == "" {
		return nil, status.Error(codes.InvalidArgument, "missing ID field 'userID' in secrets")
	}
	directory, err := os.MkdirTemp("", "ceph")
	if err != nil {
		return nil, err
	}
	ceph := &connection{user: user, monitors: monitors, directory: directory}
	keyring := fmt.Sprintf("[client.%s]\nkey = %s\n", user, key)
	if err := errors.Join(os.WriteFile(ceph.keyring(), []byte(keyring), 0o600), ceph.configure()); err != nil {
		ceph.close()
		return nil, err
	}
	return ceph, nil
}

// configure writes a ceph.conf, for programs that take everything from there.
func (c *connection) configure() error {
	text := fmt.Sprintf("[global]\nmon_host = %s\nkeyring = %s\nclient_mount_timeout = 20\n", c.monitors, c.keyring())
	return os.WriteFile(c.configuration(), []byte(text), 0o600)
}

func (c *connection) keyring() string       { return filepath.Join(c.directory, "keyring") }
func (c *connection) configuration() string { return filepath.Join(c.directory, "ceph.conf") }
func (c *connection) close()                { os.RemoveAll(c.directory) }

// monitorsOf reads the list that Rook keeps for its drivers.
func monitorsOf(clusters, id string) (string, error) {
	text, err := os.ReadFile(clusters)
	if err != nil {
		return "", err
	}
	var listed []struct {
		ClusterID string   `json:"clusterID"`
		Monitors  []string `json:"monitors"`
	}
	if err := json.Unmarshal(text, &listed); err != nil {
		return "", err
	}
	for _, cluster := range listed {
		if cluster.ClusterID == id && len(cluster.Monitors) > 0 {
			return strings.Join(cluster.Monitors, ","), nil
		}
	}
	return "", fmt.Errorf("missing configuration for cluster ID %q", id)
}

// run runs one of Ceph's programs and returns its output.
func (c *connection) run(ctx context.Context, program string, arguments ...string) (string, error) {
	options := []string{"--conf", c.configuration(), "--id", c.user, "--keyring", c.keyring()}
	if program == "ceph" {
		options = append(options, "--connect-timeout", "20")
	}
	output, err := command(ctx, program, append(options, arguments...)...)
	if err != nil && couldNotConnect(err.Error()) {
		return "", status.Errorf(codes.Internal, "failed to get connection: connecting failed: %v", err)
	}
	return output, err
}

// couldNotConnect returns whether `ceph` or `rbd` complains like this about a wrong key or monitors that do not answer.
func couldNotConnect(complaint string) bool {
	return strings.Contains(complaint, "error connecting to the cluster") || strings.Contains(complaint, "couldn't connect")
}

// commandError is how a program ended.
type commandError struct {
	code   int
	output string
}

func (e *commandError) Error() string { return fmt.Sprintf("exit code %d: %s", e.code, e.output) }

// command runs a program until it or the call ends, and returns its output.
func command(ctx context.Context, program string, arguments ...string) (string, error) {
	var output, complaint bytes.Buffer
	process := exec.CommandContext(ctx, program, arguments...)
	process.Stdout, process.Stderr = &output, &complaint
	err := process.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", status.FromContextError(ctx.Err()).Err()
	case errors.As(err, &ended):
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		return "", &commandError{code: ended.ExitCode(), output: program + ": " + lines[len(lines)-1]}
	case err != nil:
		return "", err
	}
	return output.String(), nil
}

// isAbsent returns whether Ceph's programs ended with "no such file or directory", as they do for whatever does not exist.
func isAbsent(err error) bool {
	var ended *commandError
	return errors.As(err, &ended) && ended.code == 2
}
