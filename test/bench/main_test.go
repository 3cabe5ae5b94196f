package main

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	all := strings.Fields("handlers load admission storage scale expiry")
	for name, tc := range map[string]struct {
		args []string
		want options
	}{
		"nothing": {nil, options{out: ".bin/bench", only: all}},
		// As the Makefile calls it without BENCH.
		"no names":   {[]string{"-only", "", "-out", "docs/performance"}, options{out: "docs/performance", only: all}},
		"one bench":  {[]string{"-only", "admission"}, options{out: ".bin/bench", only: []string{"admission"}}},
		"in full":    {[]string{"-full", "-only", "expiry"}, options{out: ".bin/bench", full: true, only: []string{"expiry"}}},
		"two of all": {[]string{"-only=load,admission", "-short"}, options{out: ".bin/bench", short: true, only: []string{"load", "admission"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parse(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const names = "only handlers, load, admission, storage, scale, expiry"
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an unknown bench":  {[]string{"-only", "speed"}, `there is no bench "speed", ` + names},
		"one of them":       {[]string{"-only", "admission,speed"}, `there is no bench "speed", ` + names},
		"a space":           {[]string{"-only", "admission, load"}, `there is no bench " load", ` + names},
		"a comma at an end": {[]string{"-only", "admission,"}, `there is no bench "", ` + names},
		"an argument":       {[]string{"admission"}, `unexpected argument "admission"`},
		"short and in full": {[]string{"-short", "-full"}, "-short and -full exclude each other"},
		"an unknown flag":   {[]string{"-long"}, "flag provided but not defined: -long"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(tc.args); err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
	if _, err := parse([]string{"-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: error %v, want the one for help", err)
	}
}
