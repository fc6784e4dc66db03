package main

import (
	"context"
	"fmt"
	"os"
	"time"

	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
)

// serviceAccounts returns the controller of default service accounts. Kubernetes 1.31 does not give
// it a logger.
func serviceAccounts(ctx context.Context, accounts coreinformers.ServiceAccountInformer, namespaces coreinformers.NamespaceInformer, client kubernetes.Interface) (*serviceaccount.ServiceAccountsController, error) {
	type options = serviceaccount.ServiceAccountsControllerOptions
	type controller = serviceaccount.ServiceAccountsController
	switch create := any(serviceaccount.NewServiceAccountsController).(type) {
	case func(klog.Logger, coreinformers.ServiceAccountInformer, coreinformers.NamespaceInformer, kubernetes.Interface, options) (*controller, error):
		return create(klog.FromContext(ctx), accounts, namespaces, client, serviceaccount.DefaultServiceAccountsControllerOptions())
	case func(coreinformers.ServiceAccountInformer, coreinformers.NamespaceInformer, kubernetes.Interface, options) (*controller, error):
		return create(accounts, namespaces, client, serviceaccount.DefaultServiceAccountsControllerOptions())
	default:
		return nil, fmt.Errorf("unknown function %T", create)
	}
}

// collect runs the *garbagecollector.GarbageCollector, which in Kubernetes 1.31 has no time limit
// for the first list.
func collect(ctx context.Context, garbage any) {
	switch collector := garbage.(type) {
	case interface {
		Run(ctx context.Context, workers int, initialSync time.Duration)
	}:
		collector.Run(ctx, workers, resync)
	case interface {
		Run(ctx context.Context, workers int)
	}:
		collector.Run(ctx, workers)
	default:
		fmt.Fprintf(os.Stderr, "controllers: %T has no known method Run\n", garbage)
	}
}
