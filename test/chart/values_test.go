package chart_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestRefusedValues(t *testing.T) {
	for name, tc := range map[string]struct {
		values []string
		want   string
	}{
		"a name at the top that is not there": {
			values: []string{"replicas=3"},
			want:   "additional properties 'replicas' not allowed",
		},
		"a name further down that is not there": {
			values: []string{"webhook.replicaCount=3"},
			want:   "additional properties 'replicaCount' not allowed",
		},
		"a value of another type": {
			values: []string{"reconciler.workers=many"},
			want:   "at '/reconciler/workers': got string, want integer",
		},
		"no replicas": {
			values: []string{"webhook.replicas=0"},
			want:   "at '/webhook/replicas': minimum: got 0, want 1",
		},
		"an account that is a user name": {
			values: []string{"trainer.serviceAccount=system:serviceaccount:team-a:trainer"},
			want:   "at '/trainer/serviceAccount'",
		},
		"an account without a namespace": {
			values: []string{"trainer.serviceAccount=trainer"},
			want:   "at '/trainer/serviceAccount'",
		},
		"an account that ends the expression it stands in": {
			values: []string{"trainer.serviceAccount=team-a/a'||'b"},
			want:   "at '/trainer/serviceAccount'",
		},
		"a switch that is neither on nor off": {
			values: []string{"trainer.correctEarlyDeadlines=never"},
			want:   "at '/trainer/correctEarlyDeadlines': got string, want boolean",
		},
		"an account of Kueue that is a user name": {
			values: []string{"kueue.serviceAccount=system:serviceaccount:team-a:kueue"},
			want:   "at '/kueue/serviceAccount'",
		},
		"an account of Kueue that ends the expression it stands in": {
			values: []string{"kueue.serviceAccount=team-a/a'||'b"},
			want:   "at '/kueue/serviceAccount'",
		},
		"snapshots that Kueue is shown or not": {
			values: []string{"kueue.showSnapshots=Ignore"},
			want:   "at '/kueue/showSnapshots': got string, want boolean",
		},
		"a name of Kueue that is not there": {
			values: []string{"kueue.enabled=true"},
			want:   "additional properties 'enabled' not allowed",
		},
		"an unknown policy for the status": {
			values: []string{"webhook.statusFailurePolicy=Warn"},
			want:   "at '/webhook/statusFailurePolicy'",
		},
		"an unknown policy for runtimes": {
			values: []string{"webhook.runtimeFailurePolicy=Warn"},
			want:   "at '/webhook/runtimeFailurePolicy'",
		},
		"runtimes in use that are neither kept nor not": {
			values: []string{"runtimes.inUse=deny"},
			want:   "at '/runtimes/inUse': value must be one of 'Deny', 'Warn', 'Allow'",
		},
		"runtimes in use that are protected by a switch": {
			values: []string{"runtimes.inUse=true"},
			want:   "at '/runtimes/inUse': value must be one of 'Deny', 'Warn', 'Allow'",
		},
		"a policy that is neither there nor not": {
			values: []string{"runtimes.admissionPolicy=Warn"},
			want:   "at '/runtimes/admissionPolicy': got string, want boolean",
		},
		"a name of the runtimes that is not there": {
			values: []string{"runtimes.failurePolicy=Fail"},
			want:   "additional properties 'failurePolicy' not allowed",
		},
		"a CRD that is neither installed nor not": {
			values: []string{"crds.install=IfMissing"},
			want:   "at '/crds/install': got string, want boolean",
		},
		"a CRD that is neither kept nor removed": {
			values: []string{"crds.keep=snapshots"},
			want:   "at '/crds/keep': got string, want boolean",
		},
		"a name of the CRDs that is not there": {
			values: []string{"crds.enabled=true"},
			want:   "additional properties 'enabled' not allowed",
		},
		"a status that needs the webhook where a JobSet does not": {
			values: []string{"webhook.failurePolicy=Ignore", "webhook.statusFailurePolicy=Fail"},
			want:   "webhook.statusFailurePolicy is Fail, but webhook.failurePolicy is Ignore",
		},
		"a warning after the deadline": {
			values: []string{"reconciler.warnBefore=-1m"},
			want:   "at '/reconciler/warnBefore'",
		},
		"a warning at a number without a unit": {
			values: []string{"reconciler.warnBefore=600"},
			want:   "at '/reconciler/warnBefore': got number, want string",
		},
		"metrics on the port of the probes": {
			values: []string{"metrics.port=8081"},
			want:   "at '/metrics/port'",
		},
		"a CA without a certificate": {
			values: []string{"certificates.caBundle=Q0E="},
			want:   "certificates.caBundle is the CA of the certificate in certificates.existingSecret, which is empty",
		},
		"an injected CA without a certificate": {
			values: ownCertificate[1:],
			want:   "webhook.configurationAnnotations has cert-manager inject a CA, but certificates.existingSecret is empty",
		},
		"a certificate whose CA nobody tells": {
			values: ownCertificate[:1],
			want:   "certificates.existingSecret is set, but nothing tells the API server its CA",
		},
		"a CA both given and injected": {
			values: append([]string{"certificates.caBundle=Q0E="}, ownCertificate...),
			want:   "certificates.caBundle is set and webhook.configurationAnnotations has cert-manager inject a CA",
		},
		"the Secret of the webhook's own certificate": {
			values: []string{"certificates.existingSecret=signalbox-webhook-cert", "certificates.caBundle=Q0E="},
			want:   "certificates.existingSecret must not be signalbox-webhook-cert",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template(tc.values...)
			checkError(t, err, tc.want)
		})
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error:\n%v\nwant one with:\n%s", err, want)
	}
}

// TestReadmeListsValues checks the values table: every value with its default, and no other.
func TestReadmeListsValues(t *testing.T) {
	got := map[string]string{}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| .+ \\|$")
	for _, match := range row.FindAllStringSubmatch(read(t, "README.md"), -1) {
		got[match[1]] = match[2]
	}
	if diff := cmp.Diff(defaults(t), got); diff != "" {
		t.Errorf("values.yaml and the table in README.md differ (-values.yaml +README.md):\n%s", diff)
	}
}

// TestSchemaCoversValues checks that the schema names the very values that values.yaml has,
// and lets no other name through.
func TestSchemaCoversValues(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, "values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	checkClosed(t, "", schema)
	known := walker{t: t, definitions: schema["definitions"].(map[string]any), values: defaults(t)}
	known.walk("", schema)
	// Not a value of this chart: Helm sets it for charts that are dependencies.
	delete(known.values, "global")
	for path := range known.values {
		t.Errorf("values.yaml has %s, the schema does not", path)
	}
}

// checkClosed checks that every part of the schema that lists properties refuses others.
func checkClosed(t *testing.T, path string, schema any) {
	t.Helper()
	switch schema := schema.(type) {
	case []any:
		for _, part := range schema {
			checkClosed(t, path, part)
		}
	case map[string]any:
		if _, listed := schema["properties"].(map[string]any); listed && schema["additionalProperties"] != false {
			t.Errorf("schema at %q: additionalProperties is not false", path)
		}
		for key, part := range schema {
			checkClosed(t, path+"/"+key, part)
		}
	}
}

// walker crosses off values as it meets them in the schema.
type walker struct {
	t           *testing.T
	definitions map[string]any
	values      map[string]string
}

func (w walker) walk(path string, schema map[string]any) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = w.definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
	}
	if _, leaf := w.values[path]; leaf {
		delete(w.values, path)
		return
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for name, part := range properties {
			w.walk(strings.TrimPrefix(path+"."+name, "."), part.(map[string]any))
		}
		return
	}
	// Free names, as those of resources: all values below are covered.
	covered := path == "global"
	for value := range w.values {
		if strings.HasPrefix(value, path+".") && schema["additionalProperties"] != nil {
			delete(w.values, value)
			covered = true
		}
	}
	if !covered {
		w.t.Errorf("the schema has %s, values.yaml does not", path)
	}
}

// defaults returns the path of every value in values.yaml with its default as JSON. Lists
// and empty maps are values; of a list that is not empty the content is left out.
func defaults(t *testing.T) map[string]string {
	t.Helper()
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(read(t, "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	flatten(t, "", values, found)
	return found
}

func flatten(t *testing.T, path string, value any, into map[string]string) {
	t.Helper()
	if parts, ok := value.(map[string]any); ok && len(parts) > 0 {
		for name, part := range parts {
			flatten(t, strings.TrimPrefix(path+"."+name, "."), part, into)
		}
		return
	}
	if list, ok := value.([]any); ok && len(list) > 0 {
		into[path] = "[...]"
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	into[path] = string(text)
}

// read returns the content of a file of the chart.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, chart, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
