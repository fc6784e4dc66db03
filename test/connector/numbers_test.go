package connector_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

const many = 5000 // services of three instances

// BenchmarkNumbers measures the first synchronisation of 5,000 services with three instances each,
// rest, and the change of one instance. It measures once, whatever -benchtime says.
func BenchmarkNumbers(b *testing.B) {
	o := stage(b)
	lines := make([]string, many)
	for i := range lines {
		lines[i] = fmt.Sprintf("s%d 80", i)
		for j := range 3 {
			lines[i] += fmt.Sprintf(" 198.18.%d.%d", i/80, 1+i%80*3+j)
		}
	}
	o.catalog(lines...)
	begun := time.Now()
	c := o.connect("a")
	controlplane.Eventually(b, "first synchronisation", func() string {
		if list, err := o.Admin.DiscoveryV1().EndpointSlices(namespace).List(b.Context(), metav1.ListOptions{Limit: 1}); err != nil || len(list.Items) == 0 {
			return "nothing is written"
		} else if left := list.RemainingItemCount; left == nil || *left != many-1 {
			return "not all is written"
		}
		return ""
	})
	took := time.Since(begun)
	time.Sleep(15 * time.Second) // what was written is compared once more
	before, used := o.writes(), cpu(b, c.PID())
	const rest = 60 * time.Second
	time.Sleep(rest)
	if n := o.writes() - before; n != 0 {
		b.Errorf("%d writes at rest, want 0", n)
	}
	atRest := cpu(b, c.PID()) - used
	used = cpu(b, c.PID())
	lines[7] = strings.Replace(lines[7], " 198", " !198", 1)
	o.catalog(lines...)
	controlplane.Eventually(b, "one change", func() string {
		if n := o.writes() - before; n != 1 {
			return fmt.Sprintf("%d writes, want 1", n)
		}
		return ""
	})
	time.Sleep(10 * time.Second)
	if n := o.writes() - before; n != 1 {
		b.Errorf("%d writes for one instance, want 1", n)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.Seconds(), "s-first-sync")
	b.ReportMetric(atRest.Seconds()*1000/rest.Seconds(), "ms-CPU/s-at-rest")
	b.ReportMetric((cpu(b, c.PID())-used).Seconds()*1000, "ms-CPU-of-a-change")
	b.ReportMetric(resident(b, c.PID()), "MiB-peak")
}

// cpu returns the processor time of a process.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // 100 ticks in a second
}

// resident returns the largest memory that the process has had, in MiB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}
