package acceptance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// acceptanceFile is where the cases are, seen from the root of the module.
const acceptanceFile = "../shared/acceptance/service-cases.json"

// caseFile is the whole file. It is decoded strictly: a field that is not here fails the test.
type caseFile struct {
	SchemaVersion int              `json:"schemaVersion"`
	Kubernetes    string           `json:"kubernetes"`
	Documentation string           `json:"documentation"`
	Cases         []acceptanceCase `json:"cases"`
}

// acceptanceCase is one situation with its follow-ups.
type acceptanceCase struct {
	Name           string                      `json:"name"`
	Source         string                      `json:"source"`
	Description    string                      `json:"description"`
	Level          string                      `json:"level"`
	Node           caseNode                    `json:"node"`
	Config         caseConfig                  `json:"config"`
	Services       []corev1.Service            `json:"services"`
	EndpointSlices []discoveryv1.EndpointSlice `json:"endpointSlices"`
	Preexisting    []caseRow                   `json:"preexisting"`
	Synced         *caseSynced                 `json:"synced"`
	Steps          []caseStep                  `json:"steps"`
	outcome
}

// caseStep is a follow-up on the accumulated state.
type caseStep struct {
	Name         string      `json:"name"`
	Apply        caseObjects `json:"apply"`
	Delete       caseKeys    `json:"delete"`
	Node         *caseNode   `json:"node"`
	ProxyHealthy *bool       `json:"proxyHealthy"`
	outcome
}

// outcome is what must be true after the case is fed, or after a step.
type outcome struct {
	Expect                 []caseRow         `json:"expect"`
	Packets                []casePacket      `json:"packets"`
	HealthChecks           []caseHealthCheck `json:"healthChecks"`
	Metrics                *caseMetrics      `json:"metrics"`
	UDPFlows               []caseFlow        `json:"udpFlows"`
	UDPFlowCleanupRequired *bool             `json:"udpFlowCleanupRequired"`
	Touched                *[]string         `json:"touched"`
}

type caseNode struct {
	Name      string            `json:"name"`
	Zone      string            `json:"zone"`
	Labels    map[string]string `json:"labels"`
	Addresses []string          `json:"addresses"`
}

type caseConfig struct {
	NodePortAddresses []string `json:"nodePortAddresses"`
	ClusterCIDRs      []string `json:"clusterCIDRs"`
	ServiceCIDRs      []string `json:"serviceCIDRs"`
	MasqueradeAll     bool     `json:"masqueradeAll"`
}

type caseObjects struct {
	Services       []corev1.Service            `json:"services"`
	EndpointSlices []discoveryv1.EndpointSlice `json:"endpointSlices"`
}

type caseKeys struct {
	Services       []string `json:"services"`
	EndpointSlices []string `json:"endpointSlices"`
}

type caseSynced struct {
	Services       bool `json:"services"`
	EndpointSlices bool `json:"endpointSlices"`
}

type caseRow struct {
	Frontend        string    `json:"frontend"`
	Scope           string    `json:"scope"`
	Kind            string    `json:"kind"`
	From            string    `json:"from"`
	Action          string    `json:"action"`
	Endpoints       []string  `json:"endpoints"`
	AffinitySeconds uint32    `json:"affinitySeconds"`
	Reject          bool      `json:"reject"`
	MasqueradeFrom  *[]string `json:"masqueradeFrom"`
	AllowSources    *[]string `json:"allowSources"`
}

type casePacket struct {
	Name       string   `json:"name"`
	Src        string   `json:"src"`
	Dst        string   `json:"dst"`
	Action     string   `json:"action"`
	Endpoints  []string `json:"endpoints"`
	Masquerade bool     `json:"masquerade"`
	Level      string   `json:"level"`
}

type caseHealthCheck struct {
	Service         string            `json:"service"`
	Listen          *bool             `json:"listen"`
	Port            uint32            `json:"port"`
	Status          int               `json:"status"`
	LocalEndpoints  uint32            `json:"localEndpoints"`
	ListenAddresses []string          `json:"listenAddresses"`
	Headers         map[string]string `json:"headers"`
	Body            json.RawMessage   `json:"body"`
}

type caseMetrics struct {
	NoLocalEndpoints struct {
		Internal uint32 `json:"internal"`
		External uint32 `json:"external"`
	} `json:"no_local_endpoints"`
}

type caseFlow struct {
	Dst      string `json:"dst"`
	Endpoint string `json:"endpoint"`
	Deleted  bool   `json:"deleted"`
}

// loadCases finds and decodes the file, or skips the test where the checkout stands alone.
func loadCases(t *testing.T) *caseFile {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(moduleRoot(t), filepath.FromSlash(acceptanceFile)))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no acceptance cases beside the checkout (%s)", acceptanceFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var file caseFile
	if err := decoder.Decode(&file); err != nil {
		t.Fatalf("decode %s: %v", acceptanceFile, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		t.Fatalf("%s: more than one JSON value", acceptanceFile)
	}
	if file.SchemaVersion != 1 {
		t.Fatalf("schema version %d, want 1", file.SchemaVersion)
	}
	return &file
}

// moduleRoot is the directory of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}
