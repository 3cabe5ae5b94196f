package chart_test

import (
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// kind is a kind of the chart's CRDs, as an API server takes it up.
type kind struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *schemacel.Validator
}

// kindOf takes up a CRD, which has one version.
func kindOf(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) kind {
	t.Helper()
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("%s has %d versions, want one", crd.Name, len(crd.Spec.Versions))
	}
	schema := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, schema, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range structuralschema.ValidateStructural(nil, structural) {
		t.Errorf("the schema of %s is not structural: %v", crd.Name, err)
	}
	validator, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		t.Fatal(err)
	}
	return kind{structural: structural, schema: validator, rules: schemacel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// validate returns what an API server has against the creation of the object, given as JSON, and
// the object as it would be stored.
func (k kind) validate(t *testing.T, text string) (map[string]any, field.ErrorList) {
	t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	pruning.Prune(object, k.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.structural)
	defaulting.Default(object, k.structural)
	errs := validation.ValidateCustomResource(nil, object, k.schema)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object)...)
	for _, err := range errs {
		switch err.Type {
		// With one of these it does not come to the rules.
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return object, errs
		}
	}
	broken, _ := k.rules.Validate(t.Context(), nil, k.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return object, append(errs, broken...)
}

// Costs up to which an API server takes a CRD: of one rule, as it estimates it for the largest
// object, and of all rules.
const (
	ruleCost = 10_000_000
	crdCost  = 100_000_000
)

// TestCRDRules compiles the rules of the CRDs as an API server does before it takes a CRD, and
// weighs them.
func TestCRDRules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, chart, "files/crds/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files of CRDs: %q, error %v; want some", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			structural := kindOf(t, generated(t, file)).structural
			rules, cost := weigh(t, nil, structural, model.SchemaDeclType(structural, true))
			t.Logf("%d rules cost %d", rules, cost)
			if rules == 0 || cost > crdCost {
				t.Errorf("%d rules cost %d, want some that cost up to %d", rules, cost, crdCost)
			}
		})
	}
}

// weigh returns how many rules there are at this path and below, and what they cost together.
func weigh(t *testing.T, path *field.Path, schema *structuralschema.Structural, of *apiservercel.DeclType) (rules int, cost uint64) {
	t.Helper()
	compiled, err := schemacel.Compile(schema, of, celconfig.PerCallLimit, environment.MustBaseEnvSet(oldest), schemacel.NewExpressionsEnvLoader())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for i, rule := range compiled {
		if rule.Error != nil {
			t.Errorf("%s: rule %q: %v", path, schema.XValidations[i].Rule, rule.Error)
		}
		if rule.MaxCost > ruleCost {
			t.Errorf("%s: rule %q may cost %d, more than %d", path, schema.XValidations[i].Rule, rule.MaxCost, ruleCost)
		}
		rules, cost = rules+1, cost+rule.MaxCost
	}
	for name := range schema.Properties {
		part := schema.Properties[name]
		escaped, _ := apiservercel.Escape(name)
		if of == nil || of.Fields[escaped] == nil {
			// Of a part that may hold anything, a rule knows no type.
			checkNoRules(t, path.Child(name), &part)
			continue
		}
		more, dearer := weigh(t, path.Child(name), &part, of.Fields[escaped].Type)
		rules, cost = rules+more, cost+dearer
	}
	// A rule in a list or map counts once for each of its parts, which is not weighed here.
	if schema.Items != nil {
		checkNoRules(t, path.Key("items"), schema.Items)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Structural != nil {
		checkNoRules(t, path.Key("values"), schema.AdditionalProperties.Structural)
	}
	return rules, cost
}

func checkNoRules(t *testing.T, path *field.Path, schema *structuralschema.Structural) {
	t.Helper()
	visitor := structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		if len(s.XValidations) > 0 {
			t.Errorf("%s: there are rules, which are not weighed", path)
		}
		return false
	}}
	visitor.Visit(schema)
}
