package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// ports hands out TCP ports of 127.0.0.1 that nobody else uses, and that stay
// free while a stopped part is away: the range lies below those that systems
// pick outgoing ports from (32768 and up), or a passing connection could take
// the port of a part between its stop and its restart.
//
// Several clusters may run at once, in this process and in others. Each owns a
// block; it holds the block by listening on the first port of it, which the
// kernel gives back when the process dies.
type ports struct {
	guard net.Listener
	end   int

	mu    sync.Mutex
	next  int
	given []int
}

const (
	firstPort = 10240
	lastPort  = 32767
	blockSize = 32
)

func claimPorts() (*ports, error) {
	blocks := (lastPort - firstPort + 1) / blockSize
	for _, i := range rand.Perm(blocks) {
		first := firstPort + i*blockSize
		guard, err := listen(first)
		if err != nil {
			continue
		}
		p := &ports{guard: guard, next: first + 1, end: first + blockSize}
		if p.allFree() {
			return p, nil
		}
		_ = guard.Close()
	}
	return nil, errors.New("no block of free ports on 127.0.0.1")
}

func (p *ports) allFree() bool {
	for port := p.next; port < p.end; port++ {
		l, err := listen(port)
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// take returns a port that nobody has who took it from here.
func (p *ports) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.given) > 0 {
		port := p.given[0]
		p.given = p.given[1:]
		return port
	}
	if p.next == p.end {
		panic(fmt.Sprintf("a cluster needs more than %d ports: raise blockSize", blockSize-1))
	}
	p.next++
	return p.next - 1
}

// give gives ports back, whose process has ended.
func (p *ports) give(ports ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given = append(p.given, ports...)
}

func (p *ports) Close() error { return p.guard.Close() }

func listen(port int) (net.Listener, error) { return net.Listen("tcp", address(port)) }

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
