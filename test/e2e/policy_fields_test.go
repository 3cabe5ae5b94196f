package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const notADuration = "must be hours, minutes and seconds in this order, of at most 6, 6 and 8 digits, at least 1s in all, such as 8h, 90m or 1h30m0s"

// The API server takes as a duration what people write and TrainJobs can have, and says what it
// takes where it refuses.
func TestPolicyDurations(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, field := range []string{"activeDeadline.default", "activeDeadline.max", "ttlAfterFinished.succeeded", "ttlAfterFinished.failed", "ttlAfterFinished.max"} {
		group, name, _ := strings.Cut(field, ".")
		tried := func(value string) string {
			spec := s.text(map[string]any{group: map[string]any{name: json.RawMessage(value)}})
			err := s.cluster.Client.Create(s.ctx, s.lifecyclePolicy("p", spec), client.DryRunAll)
			if err == nil {
				return ""
			}
			s.causes(err)
			_, reason, _ := strings.Cut(err.Error(), `" is invalid: `)
			return reason
		}
		for _, value := range []string{"1s", "90m", "8h", "1h30m0s", "1h0m1s", "0h1m", "90m5s", "0h0m1s", "999999h", "99999999s", "100000h5s"} {
			if got := tried(`"` + value + `"`); got != "" {
				t.Errorf("%s %s: refused: %s", field, value, got)
			}
		}
		for _, value := range []string{"500ms", "0s", "-1h", "", "8", "1.5h", "1d", "30m1h", "1h30", "1h 30m", "+1h", "1500ms", "1h0.5s", "0h0m0s", "8H", "1000000h", "0h1m0s0ms", "1s1s"} {
			if got, want := tried(`"`+value+`"`), "spec."+field+": Invalid value: \""+value+"\": "+notADuration; got != want {
				t.Errorf("%s %s: %q, want %q", field, value, got, want)
			}
		}
		for value, want := range map[string]string{
			"28800":                        "[spec." + field + `: Invalid value: "integer": spec.` + field + ` in body must be of type string: "integer", `,
			`"0000000000000000000000001s"`: "[spec." + field + ": Too long: may not be more than 24 bytes, ",
		} {
			// That other rules were not looked at then is said too.
			if got := tried(value); !strings.HasPrefix(got, want) {
				t.Errorf("%s %s: %q, want %q", field, value, got, want)
			}
		}
	}
}

// A policy says something, and nothing that contradicts itself.
func TestPolicyFields(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	policy := s.sets("stored", `{"activeDeadline":{"default":"1h","max":"2h"},"ttlAfterFinished":{"succeeded":"1h","failed":"1h","max":"2h"}}`)
	for name, tc := range map[string]struct{ spec, want string }{
		"nothing":                        {`{}`, `spec: Invalid value: must set activeDeadline, ttlAfterFinished or both`},
		"a selector alone":               {`{"runtimeSelector":{}}`, `spec: Invalid value: must set activeDeadline, ttlAfterFinished or both`},
		"an empty deadline":              {`{"activeDeadline":{}}`, `spec.activeDeadline: Invalid value: 0: spec.activeDeadline in body should have at least 1 properties`},
		"an empty time to stay":          {`{"ttlAfterFinished":{}}`, `spec.ttlAfterFinished: Invalid value: 0: spec.ttlAfterFinished in body should have at least 1 properties`},
		"a default over the maximum":     {`{"activeDeadline":{"default":"2h","max":"119m"}}`, `spec.activeDeadline.default: Invalid value: default must not be more than max`},
		"a default of the maximum":       {`{"activeDeadline":{"default":"2h","max":"120m"}}`, ""},
		"succeeded over the maximum":     {`{"ttlAfterFinished":{"succeeded":"61s","max":"1m"}}`, `spec.ttlAfterFinished.succeeded: Invalid value: succeeded must not be more than max`},
		"failed over the maximum":        {`{"ttlAfterFinished":{"failed":"61s","max":"1m"}}`, `spec.ttlAfterFinished.failed: Invalid value: failed must not be more than max`},
		"all of the maximum":             {`{"ttlAfterFinished":{"succeeded":"1m","failed":"60s","max":"0h1m"}}`, ""},
		"a requirement alone":            {`{"activeDeadline":{"required":true}}`, ""},
		"a default that is no duration":  {`{"activeDeadline":{"default":"x","max":"1h"}}`, `spec.activeDeadline.default: Invalid value: "x": ` + notADuration},
		"a maximum that is no duration":  {`{"activeDeadline":{"default":"1h","max":"x"}}`, `spec.activeDeadline.max: Invalid value: "x": ` + notADuration},
		"a maximum of less than nothing": {`{"ttlAfterFinished":{"succeeded":"1h","max":"-1h"}}`, `spec.ttlAfterFinished.max: Invalid value: "-1h": ` + notADuration},
	} {
		got := ""
		if err := s.cluster.Client.Create(s.ctx, s.lifecyclePolicy("p", tc.spec), client.DryRunAll); err != nil {
			s.causes(err)
			_, got, _ = strings.Cut(err.Error(), `" is invalid: `)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	// The same of edits.
	for patch, field := range map[string]string{
		`{"spec":{"activeDeadline":{"max":"59m"}}}`:                     "spec.activeDeadline.default",
		`{"spec":{"ttlAfterFinished":{"failed":"3h"}}}`:                 "spec.ttlAfterFinished.failed",
		`{"spec":{"activeDeadline":{"default":"500ms"}}}`:               "spec.activeDeadline.default",
		`{"spec":{"activeDeadline":null,"ttlAfterFinished":null}}`:      "spec",
		`{"spec":{"activeDeadline":{"default":null,"max":null}}}`:       "spec.activeDeadline",
		`{"spec":{"activeDeadline":{"default":"3h","max":"2h59m59s"}}}`: "spec.activeDeadline.default",
	} {
		if got := s.causes(s.patchAny(bare(policy), patch)); len(got) != 1 || got[0] != field {
			t.Errorf("%s: refused for %v, want %s", patch, got, field)
		}
	}
	s.policyIs(policy, "True/InForce", 1)
}

// What kubectl shows of a policy.
func TestPolicyColumns(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	policy := s.sets("p", `{"activeDeadline":{"default":"1h30m0s","max":"2h","required":true},"ttlAfterFinished":{"succeeded":"24h","failed":"72h","max":"100h"}}`)
	s.policyIs(policy, "True/InForce", 1)
	broken := s.sets("broken", `{"namespaceSelector":{"matchLabels":{"-":"x"}},"activeDeadline":{"default":"90m"}}`)
	s.policyIs(broken, "False/InvalidSelector", 0)
	for _, tc := range []struct {
		name, want string
	}{
		{policy.GetName(), `["1h30m0s","2h",true,"24h","72h","100h",1,"True"]`},
		{broken.GetName(), `["90m",null,null,null,null,null,0,"False"]`},
	} {
		table := s.table("/apis/lifecycle.trainer.kubeflow.org/v1alpha1/lifecyclepolicies/" + tc.name)
		var columns []string
		for _, column := range table.ColumnDefinitions {
			name := column.Name
			if column.Priority > 0 {
				name += " (wide)"
			}
			columns = append(columns, name)
		}
		if got, want := strings.Join(columns, ", "), "Name, Default, Max, Required, TTL-Succeeded, TTL-Failed, TTL-Max (wide), Namespaces, Ready, Age"; got != want {
			t.Fatalf("columns %s, want %s", got, want)
		}
		cells := table.Rows[0].Cells
		if got := s.text(cells[1 : len(cells)-1]); got != tc.want {
			t.Errorf("%s: cells %s, want %s", tc.name, got, tc.want)
		}
	}
	if out := s.kubectl("", "get", "lcp", policy.GetName()); !strings.Contains(out, "1h30m0s") {
		t.Errorf("kubectl get lcp prints %s", out)
	}
}

// table reads what the API server shows of an object to people.
func (s *scene) table(path string) *metav1.Table {
	s.Helper()
	c, err := rest.HTTPClientFor(s.cluster.Config)
	s.must(err)
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.cluster.Config.Host+path, nil)
	s.must(err)
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := c.Do(request)
	s.must(err)
	defer func() { _ = response.Body.Close() }()
	table := &metav1.Table{}
	s.must(json.NewDecoder(response.Body).Decode(table))
	if len(table.Rows) != 1 {
		s.Fatalf("%s: %s with %d rows", path, response.Status, len(table.Rows))
	}
	return table
}
