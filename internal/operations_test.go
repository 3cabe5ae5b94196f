package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const operations = "../docs/operations.md"

// Every metric of Signalbox is in the document for operators, with the labels that it has, and
// every one that the document names is there.
func TestMetricsAreDocumented(t *testing.T) {
	rows := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(signalbox_\\w+)(?:\\{([\\w,]*)\\})?` \\|").FindAllStringSubmatch(document(t, operations), -1) {
		rows[row[1]] = slices.DeleteFunc(strings.Split(row[2], ","), func(label string) bool { return label == "" })
	}
	registered := registered(t)
	if len(registered) < 10 {
		t.Fatalf("only %d metrics are found in the code: %v", len(registered), registered)
	}
	for name, labels := range registered {
		if is, found := rows[name]; !found {
			t.Errorf("%s has no row in %s", name, operations)
		} else if !slices.Equal(is, labels) {
			t.Errorf("%s has the labels %v in %s, and %v in the code", name, is, operations, labels)
		}
	}
	for _, name := range regexp.MustCompile(`signalbox_\w+`).FindAllString(document(t, operations), -1) {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if _, found := registered[base]; !found {
			t.Errorf("%s names the metric %s, which there is not", operations, name)
		}
	}
}

// Every controller whose work controller_runtime_reconcile_total counts is in the document.
func TestControllersAreDocumented(t *testing.T) {
	text := document(t, operations)
	found := 0
	inspect(t, func(file string, node ast.Node) {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return
		}
		if selector, ok := call.Fun.(*ast.SelectorExpr); !ok || selector.Sel.Name != "Named" {
			return
		}
		// A name is a text, or one with a kind behind it.
		argument := call.Args[0]
		if sum, ok := argument.(*ast.BinaryExpr); ok {
			argument = sum.X
		}
		if name := literal(argument); name != "" {
			found++
			if !strings.Contains(text, "`"+name) {
				t.Errorf("the controller %s of %s is not in %s", name, file, operations)
			}
		}
	})
	if found < 6 {
		t.Errorf("only %d controllers are found", found)
	}
}

// Every alert of the chart is in the document, with its severity, and every one that the document
// names is there.
func TestAlertsAreDocumented(t *testing.T) {
	found := func(pattern, path string) []string {
		var alerts []string
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(document(t, path), -1) {
			alerts = append(alerts, match[1]+" "+match[2])
		}
		slices.Sort(alerts)
		return alerts
	}
	alerts := found(`(?s)- alert: (\w+)\n.*?severity: (\w+)\n`, "../charts/signalbox/files/alerts.yaml")
	if len(alerts) == 0 {
		t.Fatal("the chart has no alerts")
	}
	if is := found("(?m)^\\| `(Signalbox\\w+)` \\| (\\w+) \\|", operations); !slices.Equal(is, alerts) {
		t.Errorf("%s has the alerts\n%s\nthe chart\n%s", operations, strings.Join(is, "\n"), strings.Join(alerts, "\n"))
	}
}

// registered are the metrics that the code makes, with their labels: a Name in the options of a
// metric, or the first argument of NewDesc.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	inspect(t, func(file string, node ast.Node) {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return
		}
		name, labels := "", []string{}
		switch first := call.Args[0].(type) {
		case *ast.CompositeLit:
			for _, element := range first.Elts {
				pair, ok := element.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "Name" {
					name = literal(pair.Value)
				}
			}
			if len(call.Args) == 2 {
				labels = texts(call.Args[1])
			}
		case *ast.BasicLit:
			name = literal(first)
			if len(call.Args) == 4 {
				labels = texts(call.Args[2])
			}
		}
		if strings.HasPrefix(name, "signalbox_") {
			found[name] = labels
		}
	})
	return found
}

// inspect calls see with every node of the product's Go files, but for their tests.
func inspect(t *testing.T, see func(file string, node ast.Node)) {
	t.Helper()
	for _, root := range []string{"../internal", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				see(path, node)
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// literal is the value of a string literal, "" for anything else.
func literal(node ast.Expr) string {
	basic, ok := node.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return ""
	}
	value, _ := strconv.Unquote(basic.Value)
	return value
}

// texts are the string literals in a composite one.
func texts(node ast.Expr) []string {
	found := []string{}
	if list, ok := node.(*ast.CompositeLit); ok {
		for _, element := range list.Elts {
			found = append(found, literal(element))
		}
	}
	return found
}

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
