package main

import (
	"context"
	"net/http"
	"time"
)

// drained returns a context that ends this long after ctx. Until the API server's side knows that
// a pod goes, it opens connections to it, and it keeps those that are open: were they closed at
// once, requests that are being sent or answered would be lost.
func drained(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(after, stop) })
	return serving, stop
}

// turnAway has whoever calls next close the connection after the answer, once ctx has ended: for
// the next request it finds another replica.
func turnAway(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
