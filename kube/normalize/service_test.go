package normalize_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
)

const (
	v4 = messages.IPFamily_IPV4
	v6 = messages.IPFamily_IPV6
)

// service returns a Service with one port, and its normalised form.
func service() (*corev1.Service, *messages.Service) {
	in := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1", CreationTimestamp: metav1.Unix(1700000000, 5)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports:      []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}
	out := &messages.Service{
		Namespace: "default", Name: "web", Uid: "u1", Created: 1700000000,
		ClusterIps: []string{"10.96.0.10"}, IpFamilies: []messages.IPFamily{v4},
		Ports: []*messages.ServicePort{{Name: "http", Protocol: messages.Protocol_TCP, Port: 80}},
	}
	return in, out
}

func TestService(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*corev1.Service)
		want   func(*messages.Service)
		fields []string
	}{
		{"as it is", func(*corev1.Service) {}, func(*messages.Service) {}, nil},
		{"no creation time", func(s *corev1.Service) { s.CreationTimestamp = metav1.Time{} }, func(s *messages.Service) { s.Created = 0 }, nil},
		{
			"old creation time", func(s *corev1.Service) { s.CreationTimestamp = metav1.NewTime(time.Unix(-5, 0)) },
			func(s *messages.Service) { s.Created = -5 }, nil,
		},
		{
			"other proxy", func(s *corev1.Service) { s.Labels = map[string]string{normalize.LabelProxyName: ""} },
			func(s *messages.Service) { s.ForeignProxy = true }, nil,
		},
		{
			"types", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName },
			func(s *messages.Service) { s.Type = messages.ServiceType_EXTERNAL_NAME }, nil,
		},
		{"no type", func(s *corev1.Service) { s.Spec.Type = "" }, func(*messages.Service) {}, nil},
		{"unknown type", func(s *corev1.Service) { s.Spec.Type = "Anycast" }, func(*messages.Service) {}, []string{"spec.type"}},
		{"policies", func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy, s.Spec.ExternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicyLocal), "Local"
		}, func(s *messages.Service) {
			s.InternalPolicy, s.ExternalPolicy = messages.TrafficPolicy_POLICY_LOCAL, messages.TrafficPolicy_POLICY_LOCAL
		}, nil},
		{"unknown policies", func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy, s.Spec.ExternalTrafficPolicy = ptr(corev1.ServiceInternalTrafficPolicy("local")), "Zone"
		}, func(*messages.Service) {}, []string{"spec.internalTrafficPolicy", "spec.externalTrafficPolicy"}},
		{
			"health check port", func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 31000 },
			func(s *messages.Service) { s.HealthCheckNodePort = 31000 }, nil,
		},
		{
			"bad health check port", func(s *corev1.Service) { s.Spec.HealthCheckNodePort = 70000 },
			func(*messages.Service) {},
			[]string{"spec.healthCheckNodePort"},
		},
		{
			"external IPs", func(s *corev1.Service) {
				s.Spec.ExternalIPs = []string{"198.51.100.007", "x", "198.51.100.7", "127.0.0.1", "169.254.1.1", "224.0.0.1", "::", "2001:DB8::1"}
			}, func(s *messages.Service) { s.ExternalIps = []string{"198.51.100.7", "2001:db8::1"} },
			[]string{"spec.externalIPs[1]", "spec.externalIPs[3]", "spec.externalIPs[4]", "spec.externalIPs[5]", "spec.externalIPs[6]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, want := service()
			c.change(in)
			c.want(want)
			got, problems := normalize.Service("test", in)
			wantMessage(t, got, want)
			wantFields(t, problems, "Service", "default/web", c.fields...)
		})
	}
}

func TestClusterIPs(t *testing.T) {
	ipv4, ipv6 := corev1.IPv4Protocol, corev1.IPv6Protocol
	for _, c := range []struct {
		name     string
		ip       string
		ips      []string
		families []corev1.IPFamily
		want     []string
		wantFam  []messages.IPFamily
		headless bool
		fields   []string
	}{
		{name: "only clusterIP", ip: "010.96.0.1", want: []string{"10.96.0.1"}},
		{name: "none yet", families: []corev1.IPFamily{ipv4}, wantFam: []messages.IPFamily{v4}},
		{name: "headless", ip: "None", ips: []string{"None"}, families: []corev1.IPFamily{ipv4}, wantFam: []messages.IPFamily{v4}, headless: true},
		{name: "headless by list", ips: []string{"None"}, headless: true},
		{
			name: "dual", ip: "fd00::1", ips: []string{"fd00::1", "10.96.0.1"}, families: []corev1.IPFamily{ipv6, ipv4},
			want: []string{"fd00::1", "10.96.0.1"}, wantFam: []messages.IPFamily{v6, v4},
		},
		{name: "bad clusterIP", ip: "10.96.0.256", fields: []string{"spec.clusterIP"}},
		{
			name: "first bad, second stays aligned with its family", ip: "x", ips: []string{"x", "fd00::1"}, families: []corev1.IPFamily{ipv4, ipv6},
			want: []string{"fd00::1"}, wantFam: []messages.IPFamily{v6, v4}, fields: []string{"spec.clusterIPs[0]"},
		},
		{
			name: "family unknown", ip: "10.96.0.1", ips: []string{"10.96.0.1", "fd00::1"}, families: []corev1.IPFamily{"IPv5", ipv6},
			want: []string{"10.96.0.1", "fd00::1"}, wantFam: []messages.IPFamily{v4, v6}, fields: []string{"spec.ipFamilies[0]"},
		},
		{
			name: "not of its family", ip: "10.96.0.1", ips: []string{"10.96.0.1"}, families: []corev1.IPFamily{ipv6},
			wantFam: []messages.IPFamily{v6}, fields: []string{"spec.clusterIPs[0]"},
		},
		{name: "unspecified", ip: "0.0.0.0", fields: []string{"spec.clusterIP"}},
		{name: "link-local is a legal service range", ip: "169.254.10.1", want: []string{"169.254.10.1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, want := service()
			in.Spec.ClusterIP, in.Spec.ClusterIPs, in.Spec.IPFamilies = c.ip, c.ips, c.families
			want.ClusterIps, want.IpFamilies, want.Headless = c.want, c.wantFam, c.headless
			got, problems := normalize.Service("test", in)
			wantMessage(t, got, want)
			wantFields(t, problems, "Service", "default/web", c.fields...)
		})
	}
}

func TestAffinity(t *testing.T) {
	seconds := func(n int32) *corev1.SessionAffinityConfig {
		return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &n}}
	}
	const timeout = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
	for _, c := range []struct {
		affinity corev1.ServiceAffinity
		config   *corev1.SessionAffinityConfig
		want     uint32
		fields   []string
	}{
		{"", nil, 0, nil},
		{"None", seconds(5), 0, nil},
		{"ClientIP", nil, 10800, nil},
		{"ClientIP", &corev1.SessionAffinityConfig{}, 10800, nil},
		{"ClientIP", &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{}}, 10800, nil},
		{"ClientIP", seconds(1), 1, nil},
		{"ClientIP", seconds(86400), 86400, nil},
		{"ClientIP", seconds(86401), 10800, []string{timeout}},
		{"ClientIP", seconds(0), 10800, []string{timeout}},
		{"ClientIP", seconds(-1), 10800, []string{timeout}},
		{"Cookie", nil, 0, []string{"spec.sessionAffinity"}},
	} {
		in, want := service()
		in.Spec.SessionAffinity, in.Spec.SessionAffinityConfig = c.affinity, c.config
		want.AffinitySeconds = c.want
		got, problems := normalize.Service("test", in)
		wantMessage(t, got, want)
		wantFields(t, problems, "Service", "default/web", c.fields...)
	}
}

func TestLoadBalancing(t *testing.T) {
	for text, fields := range map[string][]string{"": nil, "maglev": nil, "Maglev": {"metadata.annotations[troupe.dev/load-balancing]"}} {
		in, want := service()
		in.Annotations = map[string]string{normalize.AnnotationLoadBalancing: text}
		want.Maglev = text == "maglev"
		got, problems := normalize.Service("test", in)
		wantMessage(t, got, want)
		wantFields(t, problems, "Service", "default/web", fields...)
	}
}

func TestServiceWithoutAName(t *testing.T) {
	for _, c := range []struct {
		namespace, name, object string
		fields                  []string
	}{
		{"", "web", `"/web"`, []string{"metadata.namespace"}},
		{"default", "", `"default/"`, []string{"metadata.name"}},
		{"a/b", "c/d", `"a/b/c/d"`, []string{"metadata.namespace", "metadata.name"}},
		{"default", "we\nb", `"default/we\nb"`, []string{"metadata.name"}},
		{"default", "Web", `"default/Web"`, []string{"metadata.name"}},
	} {
		in, _ := service()
		in.Namespace, in.Name = c.namespace, c.name
		got, problems := normalize.Service("test", in)
		if got != nil {
			t.Errorf("%q/%q was delivered", c.namespace, c.name)
		}
		wantFields(t, problems, "Service", c.object, c.fields...)
	}
}
