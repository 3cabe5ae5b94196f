package chart_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/policy"
)

// lifecyclePolicies is the kind LifecyclePolicy.
func lifecyclePolicies(t *testing.T) kind {
	t.Helper()
	return kindOf(t, generated(t, filepath.Join(root, chart, "files/crds", v1alpha1.Group+"_lifecyclepolicies.yaml")))
}

// durations are the fields of a policy that are one, as paths below its spec.
var durations = []string{
	"activeDeadline.default", "activeDeadline.max",
	"ttlAfterFinished.succeeded", "ttlAfterFinished.failed", "ttlAfterFinished.max",
}

// policyWith is a policy with this JSON in its field of a duration, and with more beside it.
func policyWith(path, value, more string) string {
	part, name, _ := strings.Cut(path, ".")
	return fmt.Sprintf(`{"spec":{%q:{%q:%s%s}}}`, part, name, value, more)
}

// quote is the text as JSON.
func quote(text string) string {
	encoded, _ := json.Marshal(text)
	return string(encoded)
}

// texts are the errors in the order of their texts.
func texts(errs field.ErrorList) []string {
	var found []string
	for _, err := range errs {
		found = append(found, err.Error())
	}
	slices.Sort(found)
	return found
}

// decodePolicy decodes what an API server would store as the webhook and the reconciler do.
func decodePolicy(t *testing.T, stored map[string]any) *v1alpha1.LifecyclePolicy {
	t.Helper()
	encoded, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	decoded := &v1alpha1.LifecyclePolicy{}
	if err := json.Unmarshal(encoded, decoded); err != nil {
		t.Fatalf("what is stored cannot be read: %v", err)
	}
	return decoded
}

// TestLifecyclePolicyDurations checks what is taken for a duration, and that it is read as meant.
func TestLifecyclePolicyDurations(t *testing.T) {
	k := lifecyclePolicies(t)
	const year = 365 * 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1s": time.Second, "60s": time.Minute, "90m": 90 * time.Minute, "8h": 8 * time.Hour, "168h": 7 * 24 * time.Hour,
		"1h30m": 90 * time.Minute, "1h30m0s": 90 * time.Minute, "1h5s": time.Hour + 5*time.Second, "1m90s": 150 * time.Second,
		"0h0m1s": time.Second, "0m1s": time.Second, "0h1m": time.Minute, "000008h": 8 * time.Hour, "00000001s": time.Second,
		"99999999s":      99999999 * time.Second,
		"999999m":        999999 * time.Minute,
		"999999h59m59s":  999999*time.Hour + 59*time.Minute + 59*time.Second,
		"999999h999999m": 999999*time.Hour + 999999*time.Minute,
		// The longest of all.
		"999999h999999m99999999s": 999999*time.Hour + 999999*time.Minute + 99999999*time.Second,
	} {
		t.Run(text, func(t *testing.T) {
			if want%time.Second != 0 || want < time.Second || want > v1alpha1.MaxSeconds*time.Second || want >= 120*year {
				t.Fatalf("%s is not within the bounds of a deadline", want)
			}
			for _, path := range durations {
				stored, errs := k.validate(t, policyWith(path, quote(text), ""))
				if len(errs) > 0 {
					t.Fatalf("%s is refused: %v", path, errs)
				}
				decoded := decodePolicy(t, stored)
				got := map[string]*v1alpha1.Duration{}
				if deadline := decoded.Spec.ActiveDeadline; deadline != nil {
					got["activeDeadline.default"], got["activeDeadline.max"] = deadline.Default, deadline.Max
				}
				if ttl := decoded.Spec.TTLAfterFinished; ttl != nil {
					got["ttlAfterFinished.succeeded"], got["ttlAfterFinished.failed"], got["ttlAfterFinished.max"] = ttl.Succeeded, ttl.Failed, ttl.Max
				}
				for _, other := range durations {
					switch read := got[other]; {
					case other != path && read != nil:
						t.Errorf("%s is read as %s, which was not set", other, read.Duration.Duration)
					case other == path && (read == nil || read.Duration.Duration != want):
						t.Errorf("%s is read as %v, want %s", path, read, want)
					}
				}
			}
			// What a program that writes the policy back makes of it.
			written := want.String()
			if _, errs := k.validate(t, policyWith(durations[0], quote(written), "")); len(errs) > 0 && want < 1000000*time.Hour {
				t.Errorf("%s, as it is written back, is refused: %v", written, errs)
			}
		})
	}
}

// TestLifecyclePolicyRefusedDurations checks that what is no duration is one error, which says
// what is one, also beside another that it cannot be compared with.
func TestLifecyclePolicyRefusedDurations(t *testing.T) {
	k := lifecyclePolicies(t)
	const rule = "must be hours, minutes and seconds in this order, of at most 6, 6 and 8 digits, at least 1s in all, such as 8h, 90m or 1h30m0s"
	const tooLong = "may not be more than 24 bytes"
	for text, want := range map[string]string{
		"": rule, " ": rule, "h": rule, "hms": rule, "8": rule, "0": rule, "none": rule, "max": rule,
		"500ms": rule, "1s500ms": rule, "1us": rule, "1µs": rule, "1ns": rule, "1.5h": rule, "0.5s": rule, ".5h": rule, "8.h": rule,
		"0s": rule, "0h": rule, "0m": rule, "0h0m0s": rule, "00000000s": rule,
		"-1h": rule, "+1h": rule, "-0s": rule, "1h-30m": rule,
		"7d": rule, "1d": rule, "1w": rule, "1y": rule, "1d8h": rule, "P1D": rule, "PT8H": rule, "8H": rule, "8 h": rule, "8hours": rule, "8h0": rule,
		" 8h": rule, "8h ": rule, "8h\n": rule, "\n8h": rule, "8h\n8h": rule, "8h\x00": rule,
		"30m1h": rule, "1s1m": rule, "1h1h": rule, "1m1m": rule, "1h1m1s1h": rule,
		"1e3s": rule, "0x1s": rule, "1_0s": rule, "1,5h": rule, "٣h": rule, "８h": rule, "8ｈ": rule,
		// From 2562048h on a duration does not fit 64 bits of nanoseconds, and seconds from
		// 4294967296 on not the field of a TrainJob.
		"1000000h": rule, "2562048h": rule, "9999999h": rule, "1000000m": rule, "100000000s": rule, "4294967296s": rule,
		"9223372037s": rule, "9223372036854775808s": rule, "99999999999999999999999h": rule,
		"999999999999999999999999h": tooLong, strings.Repeat("0", 30) + "8h": tooLong, strings.Repeat("8h", 1<<20): tooLong,
	} {
		name := text
		if len(name) > 40 {
			name = name[:40] + "..."
		}
		t.Run(quote(name), func(t *testing.T) {
			for _, path := range durations {
				want := fmt.Sprintf("spec.%s: Invalid value: %q: %s", path, text, want)
				if strings.HasSuffix(want, tooLong) {
					want = fmt.Sprintf("spec.%s: Too long: %s", path, tooLong)
				}
				beside := `,"max":"8h"`
				if strings.HasSuffix(path, ".max") {
					beside = ""
				}
				for _, more := range []string{"", beside} {
					_, errs := k.validate(t, policyWith(path, quote(text), more))
					if diff := cmp.Diff([]string{want}, texts(errs)); diff != "" {
						t.Errorf("errors with %s beside it (-want +got):\n%s", more, diff)
					}
				}
			}
		})
	}
}

// TestLifecyclePolicyOrder checks that nothing is more than the maximum that it would be cut to.
func TestLifecyclePolicyOrder(t *testing.T) {
	k := lifecyclePolicies(t)
	const rule = "must be hours, minutes and seconds in this order, of at most 6, 6 and 8 digits, at least 1s in all, such as 8h, 90m or 1h30m0s"
	over := func(path, name string) string {
		return fmt.Sprintf("spec.%s.%s: Invalid value: %s must not be more than max", path, name, name)
	}
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"default below max":             {spec: `"activeDeadline":{"default":"8h","max":"72h"}`},
		"default equal to max":          {spec: `"activeDeadline":{"default":"8h","max":"8h"}`},
		"equal, and written in another": {spec: `"activeDeadline":{"default":"480m","max":"8h"},"ttlAfterFinished":{"succeeded":"1h","failed":"0h60m","max":"3600s"}`},
		"more digits are not more":      {spec: `"activeDeadline":{"default":"90m","max":"2h"},"ttlAfterFinished":{"succeeded":"3600s","max":"1h1s"}`},
		"the longest of all":            {spec: `"activeDeadline":{"default":"999999h999999m99999999s","max":"999999h999999m99999999s"}`},
		"succeeded and failed below":    {spec: `"ttlAfterFinished":{"succeeded":"1h","failed":"24h","max":"168h"}`},
		"each has a max of its own":     {spec: `"activeDeadline":{"default":"8h","max":"8h"},"ttlAfterFinished":{"succeeded":"9h","failed":"1h","max":"9h"}`},

		"default over max":               {spec: `"activeDeadline":{"default":"8h","max":"7h59m59s"}`, want: []string{over("activeDeadline", "default")}},
		"default over max by its digits": {spec: `"activeDeadline":{"default":"2h","max":"90m"}`, want: []string{over("activeDeadline", "default")}},
		"default over max and required":  {spec: `"activeDeadline":{"default":"2h","max":"1h","required":true}`, want: []string{over("activeDeadline", "default")}},
		"the longest over another":       {spec: `"activeDeadline":{"default":"999999h999999m99999999s","max":"1s"}`, want: []string{over("activeDeadline", "default")}},
		"succeeded over max":             {spec: `"ttlAfterFinished":{"succeeded":"2h","failed":"1h","max":"1h"}`, want: []string{over("ttlAfterFinished", "succeeded")}},
		"failed over max":                {spec: `"ttlAfterFinished":{"succeeded":"1h","failed":"61m","max":"1h"}`, want: []string{over("ttlAfterFinished", "failed")}},
		"all over their max": {
			spec: `"activeDeadline":{"default":"2s","max":"1s"},"ttlAfterFinished":{"succeeded":"2s","failed":"2s","max":"1s"}`,
			want: []string{over("activeDeadline", "default"), over("ttlAfterFinished", "failed"), over("ttlAfterFinished", "succeeded")},
		},
		"both are none": {
			spec: `"activeDeadline":{"default":"1d","max":"7d"}`,
			want: []string{`spec.activeDeadline.default: Invalid value: "1d": ` + rule, `spec.activeDeadline.max: Invalid value: "7d": ` + rule},
		},
		// A max of nothing is below everything, too.
		"max is nothing": {
			spec: `"activeDeadline":{"default":"8h","max":"0s"}`,
			want: []string{over("activeDeadline", "default"), `spec.activeDeadline.max: Invalid value: "0s": ` + rule},
		},
		"one is wrong, the other is over": {
			spec: `"ttlAfterFinished":{"succeeded":"1w","failed":"2h","max":"1h"}`,
			want: []string{over("ttlAfterFinished", "failed"), `spec.ttlAfterFinished.succeeded: Invalid value: "1w": ` + rule},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.validate(t, `{"spec":{`+tc.spec+`}}`)
			if diff := cmp.Diff(tc.want, texts(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLifecyclePolicyShapes writes policies that say nothing, or something else than a policy can.
func TestLifecyclePolicyShapes(t *testing.T) {
	k := lifecyclePolicies(t)
	const (
		nothing       = "spec: Invalid value: must set activeDeadline, ttlAfterFinished or both"
		emptyDeadline = "spec.activeDeadline: Invalid value: 0: spec.activeDeadline in body should have at least 1 properties"
		emptyTTL      = "spec.ttlAfterFinished: Invalid value: 0: spec.ttlAfterFinished in body should have at least 1 properties"
		noSpec        = "spec: Required value"
	)
	mustBe := func(path, kind, is string) []string {
		return []string{fmt.Sprintf("%s: Invalid value: %q: %s in body must be of type %s: %q", path, is, path, kind, is)}
	}
	for name, tc := range map[string]struct {
		policy string
		want   []string
	}{
		"a default alone":                {policy: policyWith("activeDeadline.default", `"8h"`, "")},
		"a max alone":                    {policy: policyWith("activeDeadline.max", `"8h"`, "")},
		"required alone":                 {policy: policyWith("activeDeadline.required", `true`, "")},
		"both parts":                     {policy: `{"spec":{"activeDeadline":{"max":"8h"},"ttlAfterFinished":{"max":"8h"}}}`},
		"the other part is null":         {policy: `{"spec":{"activeDeadline":{"max":"8h"},"ttlAfterFinished":null}}`},
		"the other duration is null":     {policy: policyWith("activeDeadline.max", `"8h"`, `,"default":null`)},
		"empty selectors":                {policy: `{"spec":{"activeDeadline":{"max":"8h"},"namespaceSelector":{},"runtimeSelector":{"matchLabels":{}}}}`},
		"a status, which nobody can set": {policy: `{"spec":{"activeDeadline":{"max":"8h"}},"status":{"matchingNamespaces":1}}`},

		"no spec":                {policy: `{}`, want: []string{noSpec}},
		"a null spec":            {policy: `{"spec":null}`, want: []string{noSpec}},
		"an empty spec":          {policy: `{"spec":{}}`, want: []string{nothing}},
		"null parts":             {policy: `{"spec":{"activeDeadline":null,"ttlAfterFinished":null}}`, want: []string{nothing}},
		"selectors alone":        {policy: `{"spec":{"namespaceSelector":{"matchLabels":{"a":"b"}}}}`, want: []string{nothing}},
		"an empty deadline":      {policy: `{"spec":{"activeDeadline":{}}}`, want: []string{emptyDeadline}},
		"an empty TTL":           {policy: `{"spec":{"ttlAfterFinished":{}}}`, want: []string{emptyTTL}},
		"two empty parts":        {policy: `{"spec":{"activeDeadline":{},"ttlAfterFinished":{}}}`, want: []string{emptyDeadline, emptyTTL}},
		"an empty part beside":   {policy: `{"spec":{"activeDeadline":{"max":"8h"},"ttlAfterFinished":{}}}`, want: []string{emptyTTL}},
		"a null default alone":   {policy: policyWith("activeDeadline.default", `null`, ""), want: []string{emptyDeadline}},
		"a field that is unheld": {policy: policyWith("activeDeadline.maximum", `"8h"`, ""), want: []string{emptyDeadline}},

		"the spec is a list":        {policy: `{"spec":[]}`, want: mustBe("spec", "object", "array")},
		"the deadline is a text":    {policy: `{"spec":{"activeDeadline":"8h"}}`, want: mustBe("spec.activeDeadline", "object", "string")},
		"required is a text":        {policy: policyWith("activeDeadline.required", `"true"`, ""), want: mustBe("spec.activeDeadline.required", "boolean", "string")},
		"a duration is a number":    {policy: policyWith("activeDeadline.default", `8`, ""), want: mustBe("spec.activeDeadline.default", "string", "integer")},
		"a duration is an object":   {policy: policyWith("ttlAfterFinished.max", `{}`, ""), want: mustBe("spec.ttlAfterFinished.max", "string", "object")},
		"a number beside another":   {policy: policyWith("activeDeadline.default", `3600`, `,"max":"8h"`), want: mustBe("spec.activeDeadline.default", "string", "integer")},
		"a selector without a verb": {policy: selecting(`{"matchExpressions":[{"key":"a"}]}`), want: []string{"spec.namespaceSelector.matchExpressions[0].operator: Required value"}},
		"a label that is a number":  {policy: selecting(`{"matchLabels":{"a":1}}`), want: mustBe("spec.namespaceSelector.matchLabels.a", "string", "integer")},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.validate(t, tc.policy)
			if diff := cmp.Diff(tc.want, texts(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// selecting is a policy with this selector of namespaces.
func selecting(selector string) string {
	return `{"spec":{"activeDeadline":{"max":"8h"},"namespaceSelector":` + selector + `}}`
}

// TestLifecyclePolicySelectors checks that a selector that an API server stores, knowing no more
// than its types, is one that the reconciler finds fault with.
func TestLifecyclePolicySelectors(t *testing.T) {
	k := lifecyclePolicies(t)
	for name, tc := range map[string]struct {
		selector string
		valid    bool
	}{
		"labels":                 {selector: `{"matchLabels":{"team":"a"}}`, valid: true},
		"an expression":          {selector: `{"matchExpressions":[{"key":"team","operator":"In","values":["a","b"]}]}`, valid: true},
		"an unknown operator":    {selector: `{"matchExpressions":[{"key":"team","operator":"Like","values":["a"]}]}`},
		"a key that is none":     {selector: `{"matchExpressions":[{"key":"the team","operator":"Exists"}]}`},
		"In without values":      {selector: `{"matchExpressions":[{"key":"team","operator":"In"}]}`},
		"Exists with a value":    {selector: `{"matchExpressions":[{"key":"team","operator":"Exists","values":["a"]}]}`},
		"a label that is none":   {selector: `{"matchLabels":{"the team":"a"}}`},
		"a value that is none":   {selector: `{"matchLabels":{"team":"a b"}}`},
		"a value that is listed": {selector: `{"matchExpressions":[{"key":"team","operator":"NotIn","values":["a b"]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			stored, errs := k.validate(t, selecting(tc.selector))
			if len(errs) > 0 {
				t.Fatalf("the API server refuses it: %v", errs)
			}
			if errs := policy.Validate(decodePolicy(t, stored)); (len(errs) == 0) != tc.valid {
				t.Errorf("the reconciler finds: %v, want it valid: %t", errs, tc.valid)
			}
		})
	}
}
