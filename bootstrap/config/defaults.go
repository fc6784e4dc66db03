package config

import (
	"time"

	"github.com/troupe-vpp/troupe/actors/render"
)

// Defaults returns a new configuration with every default. Only the node name is missing.
func Defaults() *Agent {
	return &Agent{
		APIVersion: APIVersion,
		Kind:       Kind,
		Renderer:   RendererAuto,
		HostRoute:  HostRoute{Source: HostRouteSourceKernel},
		Kubernetes: Kubernetes{Source: SourceKubernetes, APIServer: OneOrMore{}, StalenessLimit: seconds(60), QPS: 5, Burst: 10},
		Services: Services{
			ClusterCIDRs:      []string{},
			ServiceCIDRs:      []string{},
			NodePortAddresses: []string{"primary"},
			AllowExternalIPs:  []string{ExternalIPsAuto},
			ReservedPorts: []string{
				// SSH, BGP, etcd, API server, kubelet, kube-proxy, VXLAN
				"22/TCP", "179/TCP", "2379/TCP", "2380/TCP", "6443/TCP", "10250/TCP", "10256/TCP", "4789/UDP",
			},
			ReserveListening: true,
			Limits: Limits{
				FrontendsPerService: 4096, FrontendsPerNamespace: 65_536, BackendsPerService: 262_144, BackendsPerNamespace: 1_048_576, VPPMemory: 512,
			},
		},
		VPP: VPP{
			Mode:          VPPSocket,
			APISocket:     "/run/vpp/api.sock",
			StatsSocket:   "/run/vpp/stats.sock",
			RequestWindow: 16,
			ReplyTimeout:  seconds(5),
			HeapReserve:   15,
		},
		NAT44: NAT44{
			InsideRole:      true,
			SessionLimitMax: 256 * 1024, SessionCheckInterval: seconds(5), // 90 MB of VPP's heap
			DrainLimit: seconds(3600), ClosedAfter: seconds(1),
			Timeouts: Timeouts{ // VPP's defaults, except UDP: DNS makes many sessions
				UDP: seconds(60), TCPEstablished: seconds(7440), TCPTransitory: seconds(240), ICMP: seconds(60),
			},
		},
		SNAT:      SNAT{OverlayPorts: []string{"4789/UDP"}}, // VXLAN
		Addresses: Addresses{Interval: Duration(500 * time.Millisecond)},
		NodeStore: NodeStore{Type: StoreAuto},
		Etcd: Etcd{
			Mode:        EtcdExternal,
			Endpoints:   []string{},
			DataDir:     "/var/lib/troupe",
			Prefix:      "/troupe/v1",
			GracePeriod: seconds(300),
		},
		Mirror: Mirror{Grace: seconds(5), ConfirmEmpty: seconds(600)},
		Healing: Healing{
			DriftCheckInterval: Duration(render.DriftCheckMost), DriftCheckLeast: Duration(render.DriftCheckLeast),
			RediscoverInterval: seconds(60), Backoff: seconds(1), Patience: seconds(30),
		},
		API: API{
			HTTPAddress: "127.0.0.1:9990", HTTPAllowedHosts: []string{}, HealthzBindAddress: "0.0.0.0:10256", HealthzLostAfter: seconds(4), ControlSocket: "/run/troupe/control.sock",
		},
		Log: Log{Format: "json", Level: "info"},
	}
}

// seconds makes a Duration of whole seconds.
func seconds(n int) Duration { return Duration(time.Duration(n) * time.Second) }
