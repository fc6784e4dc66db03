// Command controllers runs the upstream controllers of which the tests need the effects: endpoint
// slices of Services, finalization of namespaces, the default service account of namespaces,
// DaemonSets, the certificate of the API server in each namespace, and garbage collection. A binder
// stands in for the scheduler.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	workers     = 5
	resync      = 30 * time.Second // of the garbage collector with the discovered resources
	sliceLength = 100              // endpoints of one slice, as in kube-controller-manager
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file with the address of the API server and the credentials")
	authority := flag.String("root-ca-file", "", "certificate of the API server's authority, which pods find in ConfigMap kube-root-ca.crt")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *authority); err != nil {
		fmt.Fprintln(os.Stderr, "controllers:", err)
		os.Exit(1)
	}
}

// run starts every controller and returns when ctx ends.
func run(ctx context.Context, kubeconfig, authority string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // no limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	objects, err := metadata.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		return fmt.Errorf("make metadata client: %w", err)
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	core := shared.Core().V1()

	slices := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(), shared.Discovery().V1().EndpointSlices(), sliceLength, client, 0)
	namespaces := namespace.NewNamespaceController(ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources, core.Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	accounts, err := serviceAccounts(ctx, core.ServiceAccounts(), core.Namespaces(), client)
	if err != nil {
		return fmt.Errorf("make service account controller: %w", err)
	}
	daemons, err := daemon.NewDaemonSetsController(ctx, shared.Apps().V1().DaemonSets(), shared.Apps().V1().ControllerRevisions(), core.Pods(), core.Nodes(), client, flowcontrol.NewBackOff(time.Second, time.Minute))
	if err != nil {
		return fmt.Errorf("make DaemonSet controller: %w", err)
	}
	certificate, err := os.ReadFile(authority)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	authorities, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, certificate)
	if err != nil {
		return fmt.Errorf("make publisher of the certificate: %w", err)
	}
	if err := bind(ctx, client, core.Pods().Informer()); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	started := make(chan struct{})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	both := informerfactory.NewInformerFactory(shared, metadatainformer.NewSharedInformerFactory(objects, 0))
	garbage, err := garbagecollector.NewGarbageCollector(ctx, client, objects, mapper, garbagecollector.DefaultIgnoredResources(), both, started)
	if err != nil {
		return fmt.Errorf("make garbage collector: %w", err)
	}

	shared.Start(ctx.Done())
	close(started)
	go slices.Run(ctx, workers)
	go namespaces.Run(ctx, workers)
	go accounts.Run(ctx, 1)
	go daemons.Run(ctx, 1)
	go authorities.Run(ctx, 1)
	go collect(ctx, garbage)
	go garbage.Sync(ctx, client.Discovery(), resync)
	<-ctx.Done()
	return nil
}
