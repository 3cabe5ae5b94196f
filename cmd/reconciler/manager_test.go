package main

import (
	"errors"
	"flag"
	"testing"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":            {},
		"everything":         {args: []string{"--leader-elect=false", "--workers=1", "--kube-api-qps=0.5", "--kube-api-burst=1", "--log-level=debug", "--log-format=text", "--warn-before=0", "--snapshots=false", "--policies=false", "--ttl=false", "--audit=false"}},
		"a later one wins":   {args: []string{"--workers=0", "--workers=2"}},
		"no workers":         {args: []string{"--workers=0"}, want: "--workers must be at least 1, not 0"},
		"no limit":           {args: []string{"--kube-api-qps=0"}},
		"a limit below none": {args: []string{"--kube-api-qps=-1"}},
		"no burst":           {args: []string{"--kube-api-burst=0"}, want: "--kube-api-burst must be at least 1, not 0"},
		"a negative warning": {args: []string{"--warn-before=-1s"}, want: "--warn-before must not be negative, as -1s is"},
		"unknown format":     {args: []string{"--log-format=xml"}, want: `--log-format must be json or text, not "xml"`},
		"an argument":        {args: []string{"now"}, want: `unexpected argument "now"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("parse(%q) = %q, want %q", tc.args, got, tc.want)
			}
		})
	}
}

// client-go takes 0 for a limit of five requests a second.
func TestParseRequestsASecond(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want float64
	}{
		"by default no limit": {want: -1},
		"none":                {args: []string{"--kube-api-qps=0"}, want: -1},
		"less than none":      {args: []string{"--kube-api-qps=-5"}, want: -1},
		"some":                {args: []string{"--kube-api-qps=0.5"}, want: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			if o, err := parse(tc.args); err != nil || o.qps != tc.want {
				t.Errorf("parse(%q) = %v requests a second, %v; want %v", tc.args, o.qps, err, tc.want)
			}
		})
	}
}

func TestParseAnswersByItself(t *testing.T) {
	for _, arg := range []string{"--help", "--version"} {
		if _, err := parse([]string{arg}); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("parse(%s) = %v, want the end", arg, err)
		}
	}
	if _, err := parse([]string{"--nonsense"}); err == nil || errors.Is(err, flag.ErrHelp) {
		t.Errorf("parse(--nonsense) = %v, want an error", err)
	}
}
