package certificate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestExpiry(t *testing.T) {
	k, _ := newKeeper(t, emptySecret(), mutating(), validating())
	registry := prometheus.NewPedanticRegistry()
	if err := RegisterExpiry(registry, k.GetCertificate); err != nil {
		t.Fatal(err)
	}
	const name = "signalbox_certificate_expiry_timestamp_seconds"
	if n, err := testutil.GatherAndCount(registry, name); n != 0 || err != nil {
		t.Errorf("%d series before there is a certificate, %v; want none", n, err)
	}
	if _, err := k.reconcile(); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("# HELP %[1]s When the certificate that the webhook serves ends, in seconds since 1970.\n# TYPE %[1]s gauge\n%[1]s %[2]d\n",
		name, now.Add(servingLife).Unix())
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), name); err != nil {
		t.Error(err)
	}
}
