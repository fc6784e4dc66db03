package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// uplinkAnnotation of a Node has the addresses of its VPP, "192.0.2.1/24,2001:db8::1/64".
const uplinkAnnotation = "example-cni.troupe.dev/uplink"

// credentials is the directory with the token of the pod.
const credentials = "/var/run/secrets/kubernetes.io/serviceaccount"

// node has the networks and addresses of a node that other nodes need.
type node struct {
	name     string
	pods     []netip.Prefix
	uplink   []netip.Prefix // addresses of its VPP, with the network
	internal []netip.Addr   // addresses of its kernel, not of VPP
}

// next is the address of the node's VPP in a family, or an invalid one.
func (n *node) next(is6 bool) netip.Addr {
	for _, p := range n.uplink {
		if p.Addr().Is6() == is6 {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// nodeList is the list of nodes as the API server sends it.
type nodeList struct {
	Items []struct {
		Metadata struct {
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			PodCIDRs []string `json:"podCIDRs"`
		} `json:"spec"`
		Status struct {
			Addresses []struct {
				Type    string `json:"type"`
				Address string `json:"address"`
			} `json:"addresses"`
		} `json:"status"`
	} `json:"items"`
}

// readNodes asks the API server for all nodes. A node with something that cannot be read comes
// without it; then there are nodes and an error.
func readNodes(ctx context.Context, client *http.Client, apiServer, token string) (nodes []node, err error) {
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, apiServer+"/api/v1/nodes", http.NoBody)
	if err != nil {
		return nil, err
	}
	ask.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(ask)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list nodes: the API server answers %s", answer.Status)
	}
	var list nodeList
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for _, item := range list.Items {
		n := node{name: item.Metadata.Name}
		for _, text := range item.Spec.PodCIDRs {
			network, wrong := netip.ParsePrefix(text)
			if wrong != nil {
				err = errors.Join(err, fmt.Errorf("podCIDRs of node %s: %w", n.name, wrong))
				continue
			}
			n.pods = append(n.pods, network)
		}
		for _, word := range strings.FieldsFunc(item.Metadata.Annotations[uplinkAnnotation], func(c rune) bool { return c == ',' }) {
			address, wrong := netip.ParsePrefix(strings.TrimSpace(word))
			if wrong != nil {
				err = errors.Join(err, fmt.Errorf("annotation %s of node %s: %w", uplinkAnnotation, n.name, wrong))
				continue
			}
			n.uplink = append(n.uplink, address)
		}
		for _, a := range item.Status.Addresses {
			address, err := netip.ParseAddr(a.Address)
			if err == nil && a.Type == "InternalIP" && address != n.next(address.Is6()) {
				n.internal = append(n.internal, address)
			}
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b node) int { return strings.Compare(a.name, b.name) })
	return nodes, err
}

// inCluster asks the API server with the credentials of the pod.
func inCluster(apiServer string) ([]node, error) {
	token, err := os.ReadFile(filepath.Join(credentials, "token"))
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(credentials, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport: transport, Timeout: 10 * time.Second,
		// the token is for the API server only
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return readNodes(context.Background(), client, apiServer, strings.TrimSpace(string(token)))
}
