package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// lag is how far behind an API server may be in what it knows of the configuration.
const lag = settle / 2

// plant is three replicas of the webhook on one store, and an API server that calls them.
type plant struct {
	*testing.T
	clock    *clocktesting.FakePassiveClock
	replicas []*Keeper
	// bundles are the CAs that the configuration held in the last lag, second by second.
	bundles [][]byte
	// trusted are pairs of CAs and certificate that were found to fit.
	trusted map[string]bool
}

// made is what the Secret holds after the first start. Keys take long to make.
var made = sync.OnceValues(func() (map[string][]byte, error) {
	data, _, err := rotate(nil, state{}, dnsName, now)
	return data, err
})

func newPlant(t *testing.T) *plant {
	p := &plant{T: t, trusted: map[string]bool{}}
	secret := emptySecret()
	data, err := made()
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = maps.Clone(data)
	first, clock := newKeeper(t, secret, mutating(), validating())
	p.clock, p.replicas = clock, []*Keeper{first}
	for range 2 {
		p.replicas = append(p.replicas, p.another())
	}
	p.look()
	p.replicas[0].trusted(t, now)
	// The API server has called no webhook yet.
	p.bundles = nil
	return p
}

// another returns one more replica, which has just started.
func (p *plant) another() *Keeper {
	first := p.replicas[0]
	return &Keeper{Client: first.Client, Clock: p.clock, Secret: first.Secret, Configuration: first.Configuration, DNSName: first.DNSName}
}

// look lets every replica look at the Secret once.
func (p *plant) look() (rest time.Duration) {
	p.Helper()
	for _, replica := range p.replicas {
		result, err := replica.reconcile()
		if err != nil {
			p.Fatal(err)
		}
		rest = max(rest, result.RequeueAfter)
	}
	return rest
}

// pass lets seconds pass. In each, every replica looks at the Secret, one after the other, and
// every API server, however far behind within lag, must trust what each serves.
func (p *plant) pass(duration time.Duration) {
	p.Helper()
	for range duration / time.Second {
		p.clock.SetTime(p.clock.Now().Add(time.Second))
		for _, replica := range p.replicas {
			if _, err := replica.reconcile(); err != nil {
				p.Fatal(err)
			}
			p.check()
		}
		p.bundles = append(p.bundles, p.bundle())
		if len(p.bundles) > int(lag/time.Second) {
			p.bundles = p.bundles[1:]
		}
	}
}

func (p *plant) bundle() []byte {
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if err := p.replicas[0].Client.Get(context.Background(), types.NamespacedName{Name: "signalbox"}, configuration); err != nil {
		p.Fatal(err)
	}
	return configuration.Webhooks[0].ClientConfig.CABundle
}

// check fails where an API server does not trust a replica.
func (p *plant) check() {
	p.Helper()
	for i, bundle := range append(slices.Clone(p.bundles), p.bundle()) {
		for j, replica := range p.replicas {
			pair, err := replica.GetCertificate(&tls.ClientHelloInfo{})
			if err != nil {
				continue // it is not ready, nobody calls it
			}
			both := string(bundle) + string(pair.Leaf.Raw)
			if p.trusted[both] {
				continue
			}
			p.trusted[both] = true
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(bundle)
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: dnsName, Roots: roots, CurrentTime: p.clock.Now()}); err != nil {
				p.Fatalf("at %s, with the CAs of %d s ago, replica %d is not trusted: %v",
					p.clock.Now().Sub(now), len(p.bundles)-i, j, err)
			}
		}
	}
}

// edit changes the data of the Secret.
func (p *plant) edit(change func(data map[string][]byte)) {
	p.Helper()
	secret := emptySecret()
	if err := p.replicas[0].Client.Get(context.Background(), secretKey, secret); err != nil {
		p.Fatal(err)
	}
	change(secret.Data)
	if err := p.replicas[0].Client.Update(context.Background(), secret); err != nil {
		p.Fatal(err)
	}
}

func remove(keys ...string) func(map[string][]byte) {
	return func(data map[string][]byte) {
		for _, key := range keys {
			delete(data, key)
		}
	}
}

// Whatever asks for another certificate: the new one comes, on every replica, the old CA goes, and
// at no moment is there an API server that does not trust what it is shown.
func TestRotationCostsNoRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(data map[string][]byte)
		// later is how long after the change it is first looked at again.
		later               time.Duration
		wantCA, wantServing bool
	}{
		"nothing":                            {},
		"nothing that lasts":                 {later: servingLife - renewBefore - time.Hour},
		"a serving certificate near its end": {later: servingLife - renewBefore + time.Hour, wantServing: true},
		"a CA near its end, with what it has signed long gone": {later: caLife - renewBefore + time.Hour, wantCA: true, wantServing: true},
		"a serving certificate that is gone":                   {change: remove(keyServing, keyServingKey), wantServing: true},
		"a serving certificate without its key":                {change: remove(keyServingKey), wantServing: true},
		"a CA without its key":                                 {change: remove(keyCAKey), wantCA: true, wantServing: true},
		"a CA with a key that is broken":                       {change: func(data map[string][]byte) { data[keyCAKey] = []byte("?") }, wantCA: true, wantServing: true},
		"a CA that is gone":                                    {change: remove(keyCA), wantCA: false, wantServing: false},
		"a CA and its key that are gone":                       {change: remove(keyCA, keyCAKey), wantCA: true, wantServing: true},
		"both keys that are gone":                              {change: remove(keyCAKey, keyServingKey), wantCA: true, wantServing: true},
		"all of it gone":                                       {change: func(data map[string][]byte) { clear(data) }, wantCA: true, wantServing: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlant(t)
			before := p.replicas[0].data(t)
			p.clock.SetTime(now.Add(max(2*settle, tc.later)))
			if tc.change != nil {
				p.edit(tc.change)
			}
			if tc.later > servingLife {
				// Nobody could have been called with what has ended.
				p.look()
			}
			p.pass(settle / 2)
			// One that starts in the middle goes along.
			p.replicas = append(p.replicas, p.another())
			p.pass(3 * settle)
			after := p.replicas[0].data(t)
			if got := !cmp.Equal(before[keyCA], after[keyCA]); got != tc.wantCA {
				t.Errorf("CA renewed = %v, want %v", got, tc.wantCA)
			}
			if got := !cmp.Equal(before[keyServing], after[keyServing]); got != tc.wantServing {
				t.Errorf("serving certificate renewed = %v, want %v", got, tc.wantServing)
			}
			if got := len(certificates(after[keyCA], p.clock.Now())); got != 1 {
				t.Errorf("%d CAs at the end, want 1", got)
			}
			for i, replica := range p.replicas {
				replica.trusted(t, p.clock.Now())
				pair, err := replica.GetCertificate(&tls.ClientHelloInfo{})
				if err != nil || !bytes.Equal(encode([]*x509.Certificate{pair.Leaf}), after[keyServing]) {
					t.Errorf("replica %d does not serve the certificate of the Secret (%v)", i, err)
				}
			}
			if rest := p.look(); rest != checkEvery {
				t.Errorf("looked at again after %s, want %s", rest, checkEvery)
			}
		})
	}
}

// Right after a start, too, a serving certificate that is gone is made anew.
func TestRotationRightAfterTheStart(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	before := p.replicas[0].data(t)
	p.edit(remove(keyServing, keyServingKey))
	p.pass(2 * time.Second)
	after := p.replicas[0].data(t)
	if cmp.Equal(before[keyServing], after[keyServing]) || !cmp.Equal(before[keyCA], after[keyCA]) {
		t.Error("the serving certificate is still the old one, or the CA is another one")
	}
}

// A second rotation of the CA comes before the first is through.
func TestRotationOnRotation(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	for _, after := range []time.Duration{settle / 2, settle + settle/2, 3 * settle} {
		p.edit(remove(keyCAKey))
		p.pass(after)
	}
	if got := len(certificates(p.replicas[0].data(t)[keyCA], p.clock.Now())); got != 1 {
		t.Errorf("%d CAs at the end, want 1", got)
	}
	// However often it is asked for, no more are trusted than the newest and that of what is served.
	for range 4 {
		p.edit(remove(keyCAKey))
		p.pass(2 * time.Second)
		if got := len(certificates(p.replicas[0].data(t)[keyCA], p.clock.Now())); got != 2 {
			t.Errorf("%d CAs meanwhile, want 2", got)
		}
	}
}

// Clocks of replicas differ: one that is ahead must not take a CA for settled because of that.
func TestRotationWithAClockAhead(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	p.replicas[2].Clock = ahead{p.clock, 30 * time.Second}
	p.pass(2 * settle)
	before := p.replicas[0].data(t)
	p.edit(remove(keyCAKey))
	p.pass(settle - 2*time.Second)
	if !cmp.Equal(before[keyServing], p.replicas[0].data(t)[keyServing]) {
		t.Error("the new CA signed before it had settled")
	}
}

// ahead is a clock that is ahead of another.
type ahead struct {
	clock.PassiveClock
	by time.Duration
}

func (a ahead) Now() time.Time { return a.PassiveClock.Now().Add(a.by) }

// What rotate returns stays as it is.
func TestRotationIsStable(t *testing.T) {
	t.Parallel()
	first, wait, err := rotate(nil, state{}, dnsName, now)
	if err != nil || wait != 0 {
		t.Fatalf("rotate = %v, %v", wait, err)
	}
	second, wait, err := rotate(maps.Clone(first), state{}.follow(first, now), dnsName, now)
	if err != nil || wait != 0 {
		t.Fatalf("rotate again = %v, %v", wait, err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("a second look changed it (-first +second):\n%s", diff)
	}
}
