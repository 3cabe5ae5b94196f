package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func TestDrained(t *testing.T) {
	const drainTime = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		serving, stop := drained(ctx, drainTime)
		defer stop()
		time.Sleep(time.Hour)
		if err := serving.Err(); err != nil {
			t.Errorf("ended before it was told to stop: %v", err)
		}
		cancel()
		time.Sleep(drainTime - time.Millisecond)
		synctest.Wait()
		if err := serving.Err(); err != nil {
			t.Errorf("ended early: %v", err)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if serving.Err() == nil {
			t.Error("serves on")
		}
	})
}

// A connection is used again until the webhook is told to stop.
func TestTurnAway(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(turnAway(ctx, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	for _, want := range []bool{false, true} {
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if response.Close != want {
			t.Errorf("the connection is closed = %v, want %v", response.Close, want)
		}
		cancel()
	}
}
