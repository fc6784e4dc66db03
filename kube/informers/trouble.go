package informers

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// cause is the reason why a resource is not watched. All causes except the last three concern all
// resources at the same time.
type cause string

// Causes, in their order in a verdict.
const (
	silent       cause = "the API server does not answer"
	untrusted    cause = "the certificate of the API server is not trusted: check the certificate authority in the kubeconfig or of the service account"
	rejected     cause = "the API server refuses the TLS connection: check the client certificate"
	unauthorized cause = "the API server refuses the credentials (401 Unauthorized): check the token or the client certificate"
	forbidden    cause = "no permission to list and watch " // the resources follow
	other        cause = "other"
	// The list that follows an expired watch takes a moment, or is part of an outage.
	expired cause = ""
)

// trouble says why one resource is not watched. The zero value means that it is watched.
type trouble struct {
	cause cause
	text  string // error of the API server or of the connection, without URLs
}

// general reports whether the trouble concerns all resources.
func (t trouble) general() bool {
	return t.cause != forbidden && t.cause != other && t.cause != expired
}

// diagnose returns the trouble that explains the error of a request.
func diagnose(err error) trouble {
	if err == nil {
		return trouble{}
	}
	text := err.Error()
	var request *url.Error
	if errors.As(err, &request) {
		text = request.Err.Error()
	}
	if connection := (*net.OpError)(nil); errors.As(err, &connection) && connection.Source != nil {
		without := *connection
		without.Source = nil // the local port differs each time
		text = strings.ReplaceAll(text, connection.Error(), without.Error())
	}
	var status apierrors.APIStatus
	var certificate *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case errors.As(err, &certificate):
		return trouble{untrusted, text}
	case errors.As(err, &alert) && alert.Op == "remote error":
		// crypto/tls marks an alert of the server so; net/http wraps it in one of several texts.
		return trouble{rejected, alert.Error()}
	case apierrors.IsUnauthorized(err):
		return trouble{unauthorized, text}
	case apierrors.IsForbidden(err):
		return trouble{forbidden, text}
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		return trouble{expired, "the watch expired (410 Gone), listing again: " + text}
	case apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsInternalError(err):
		return trouble{silent, text}
	case errors.As(err, &status):
		return trouble{other, text}
	default:
		return trouble{silent, text}
	}
}

// String describes the trouble of resources that all have it.
func (t trouble) String(resources string) string {
	switch {
	case t.cause == other || t.cause == expired:
		return resources + ": " + t.text
	case t.cause == forbidden:
		return fmt.Sprintf("%s%s: bind the ClusterRole of the agent to its service account (%s)", forbidden, resources, t.text)
	case t.cause == unauthorized:
		return string(unauthorized)
	default:
		return fmt.Sprintf("%s: %s", t.cause, t.text)
	}
}
