package bootstrap

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/cluster/etcd"
)

// TestMain runs the tests or, started under the name of the program, the program. So the scripts
// below testdata/script start the program as users do, in processes of its own, without building
// it.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){
		"troupe": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// leakChecked are tests that must not leave goroutines.
type leakChecked struct{ *testing.M }

// Run satisfies testscript.TestingM.
func (m leakChecked) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// patience is the longest time that a script waits; every event that it waits for takes a small
// part of it.
const patience = 30 * time.Second

// TestScript runs the program at the level of its user. Besides the commands of testscript the
// scripts have scriptCommands; DEMO is the directory of the demo's cluster, CLUSTER the kubeconfig
// of a cluster with one agent.
func TestScript(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of processes, which the race detector makes slow to start; packages of the agent are tested with it")
	}
	demo, err := filepath.Abs("../deploy/demo")
	if err != nil {
		t.Fatal(err)
	}
	cluster := newAPIServer(t)
	cluster.add("shop-a", corev1.PodRunning, apitest.Start(t, apitest.New(1), nil).Address)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                scriptCommands(),
		Setup: func(env *testscript.Env) error {
			env.Setenv("DEMO", demo)
			env.Setenv("CLUSTER", cluster.kubeconfig)
			env.Values[processesKey{}] = &processes{byName: map[string]*process{}, etcds: map[string]*etcd.Embedded{}}
			return nil
		},
	})
}
