package informers

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

// Minor versions of Kubernetes 1: the first that deprecates spec.externalIPs, and the first whose
// kube-proxy does not serve it by default (KEP-5707).
const (
	deprecates = 36
	leavesOut  = 40
)

// externalIPs treats spec.externalIPs as kube-proxy of the API server's version does.
type externalIPs struct {
	version func(context.Context) (*version.Info, error)
	log     *slog.Logger

	asked atomic.Bool
	minor atomic.Int64 // 0 = not known
	once  sync.Once    // for the warning about the first service with external IPs
}

// follow makes the resource ask for the version, and normalise its Services accordingly.
func (r *resource) follow(e *externalIPs) {
	r.before, r.hold = e.ask, normalised(e.service)
}

// ask asks for the version, once. If the API server does not tell its version, external IPs are
// served as before 1.36.
func (e *externalIPs) ask(ctx context.Context) error {
	if e.asked.Load() {
		return nil
	}
	info, err := e.version(ctx)
	if unanswered(err) || ctx.Err() != nil {
		return err
	}
	if err == nil {
		var minor int
		if minor, err = strconv.Atoi(strings.TrimRight(info.Minor, "+")); err == nil && info.Major == "1" {
			e.minor.Store(int64(minor))
		}
	}
	if err != nil {
		e.log.Warn("version of the API server is not known: external IPs are served", "err", err)
	}
	e.asked.Store(true)
	return nil
}

// service normalises a Service. It leaves out external IPs if Kubernetes does not serve them.
func (e *externalIPs) service(source string, in *corev1.Service) (*messages.Service, []*messages.ObjectError) {
	out, problems := normalize.Service(source, in)
	minor := e.minor.Load()
	if len(out.GetExternalIps()) == 0 || minor < deprecates {
		return out, problems
	}
	const advice = "set services.allowExternalIPs to the networks of which they are to be served"
	if minor < leavesOut {
		e.once.Do(func() {
			e.log.Warn("spec.externalIPs is deprecated since Kubernetes 1.36, and from 1.40 on it is not served by default: "+advice, "service", in.Namespace+"/"+in.Name)
		})
		return out, problems
	}
	out.ExternalIps = nil
	return out, append(problems, &messages.ObjectError{
		Source: source, Kind: normalize.KindService, Object: in.Namespace + "/" + in.Name, Field: "spec.externalIPs",
		Message: fmt.Sprintf("is not served by default in Kubernetes 1.%d: %s", minor, advice),
	})
}
