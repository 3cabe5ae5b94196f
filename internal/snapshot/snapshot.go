// Package snapshot keeps a TrainJob on the runtime that it first ran with: a snapshot of that
// runtime is sealed into annotations of the TrainJob in the very write that makes it active,
// and filed from there as the objects that Trainer and people read.
//
// A runtime is handled as the JSON that is stored, never as a type: fields that these sources
// do not know survive.
package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	goyaml "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// Snapshot is the content of a runtime as it was once. It is never changed.
type Snapshot struct {
	// Source is the runtime that it was taken of.
	Source v1alpha1.RuntimeSource
	// Revision identifies the content of the runtime's spec.
	Revision string
	// SealedAt is when a TrainJob got it, to the second; zero before that.
	SealedAt time.Time

	// object is the runtime: apiVersion, kind, metadata and spec, which carries revision and
	// source in the annotations of its template, so that Trainer copies them to the JobSet.
	object map[string]any
}

// Take takes the snapshot of a runtime, which is as JSON decodes into a map. Of its metadata
// it keeps what names it, the labels, and the annotations of Signalbox.
func Take(runtime map[string]any) (*Snapshot, error) {
	apiVersion, _ := runtime["apiVersion"].(string)
	kind, _ := runtime["kind"].(string)
	metadata, _ := runtime["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	spec, _ := runtime["spec"].(map[string]any)
	if apiVersion == "" || kind == "" || name == "" || spec == nil {
		return nil, errors.New("apiVersion, kind, metadata.name and spec must be set")
	}
	uid, _ := metadata["uid"].(string)
	generation, _ := metadata["generation"].(int64)
	s := &Snapshot{
		Source:   v1alpha1.RuntimeSource{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(uid), Generation: generation},
		Revision: Revision(spec),
	}
	kept := map[string]any{}
	for _, key := range []string{"name", "namespace", "uid", "generation", "labels"} {
		if value := metadata[key]; value != nil {
			kept[key] = value
		}
	}
	own := map[string]any{}
	annotations, _ := metadata["annotations"].(map[string]any)
	for key, value := range annotations {
		if strings.HasPrefix(key, v1alpha1.Group+"/") {
			own[key] = value
		}
	}
	if len(own) > 0 {
		kept["annotations"] = own
	}
	s.object = map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": kept, "spec": stamped(spec, s.Revision, Name(s.Source))}
	return s, nil
}

// stamped returns the spec with its revision and source in the annotations of the JobSet
// template. The source tells what was written from a snapshot from the runtime itself, which
// carries the revision alone.
func stamped(spec map[string]any, revision, source string) map[string]any {
	template, _ := spec["template"].(map[string]any)
	annotations := clone(annotationsOf(template))
	annotations[v1alpha1.AnnotationRuntimeRevision] = revision
	annotations[v1alpha1.AnnotationRuntimeSource] = source
	spec = clone(spec)
	spec["template"] = withAnnotations(template, annotations)
	return spec
}

// Stamp returns the revision that a runtime's spec carries in the annotations of its JobSet
// template, right or wrong; "" when it carries none.
func Stamp(spec map[string]any) string {
	revision, _ := annotationsOf(spec["template"])[v1alpha1.AnnotationRuntimeRevision].(string)
	return revision
}

// Stamped returns the revision of a runtime's spec, and whether it carries that, and no source,
// which only a snapshot does.
func Stamped(spec map[string]any) (revision string, stamped bool) {
	revision = Revision(spec)
	_, copied := annotationsOf(spec["template"])[v1alpha1.AnnotationRuntimeSource]
	return revision, Stamp(spec) == revision && !copied
}

// annotation returns an annotation of the JobSet template of a runtime; "" when there is none.
func annotation(runtime map[string]any, key string) string {
	spec, _ := runtime["spec"].(map[string]any)
	value, _ := annotationsOf(spec["template"])[key].(string)
	return value
}

// Name names the runtime as KIND/NAME.
func Name(source v1alpha1.RuntimeSource) string { return source.Kind + "/" + source.Name }

// IsOf tells whether the snapshot is of the runtime that the TrainJob refers to, which is all
// that Trainer asks for.
func (s *Snapshot) IsOf(job *trainer.TrainJob) bool {
	gvk := job.Spec.RuntimeRef.GroupVersionKind()
	group, _, _ := strings.Cut(s.Source.APIVersion, "/")
	return group == gvk.Group && s.Source.Kind == gvk.Kind && s.Source.Name == job.Spec.RuntimeRef.Name
}

// FromYAML reads the runtime that Trainer keeps in a ConfigMap.
func FromYAML(text string) (*Snapshot, error) {
	object, err := yamlObject(text)
	if err != nil {
		return nil, err
	}
	return Take(object)
}

// yamlObject reads YAML as the API machinery reads JSON.
func yamlObject(text string) (object map[string]any, err error) {
	if err := plain(text); err != nil {
		return nil, err
	}
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	return object, json.Unmarshal(content, &object)
}

// plain refuses YAML in which a value stands for another: a few such can stand for any number of
// values, and Trainer writes none.
func plain(text string) error {
	// What has no asterisk has no alias.
	if !strings.Contains(text, "*") {
		return nil
	}
	var document goyaml.Node
	if err := goyaml.Unmarshal([]byte(text), &document); err != nil {
		// Another parser may read it, with its aliases.
		return err
	}
	if anyAlias(&document) {
		return errors.New("YAML with aliases")
	}
	return nil
}

func anyAlias(node *goyaml.Node) bool {
	return node.Kind == goyaml.AliasNode || slices.ContainsFunc(node.Content, anyAlias)
}

// Holds tells whether Trainer, going by this text of its ConfigMap, builds what the snapshot
// says and puts its revision on it.
func (s *Snapshot) Holds(text string) bool { return summarize(text) == s.summary() }

// HoldsFor tells the same, and also whether a JobSet with these annotations was built from
// this text: where a snapshot was written over what Trainer had taken, Trainer may still have
// built from that, which the source on the JobSet tells.
func (s *Snapshot) HoldsFor(text string, jobSet map[string]string) bool {
	object, err := yamlObject(text)
	return err == nil && summaryOf(object) == s.summary() &&
		annotation(object, v1alpha1.AnnotationRuntimeSource) == jobSet[v1alpha1.AnnotationRuntimeSource]
}

// summary is all of the snapshot that decides what Trainer builds.
func (s *Snapshot) summary() string {
	return s.summaryWith(s.Revision)
}

// summaryWith is the summary of the snapshot where its content carries this revision.
func (s *Snapshot) summaryWith(carried string) string {
	return fmt.Sprint(s.Source.APIVersion, " ", Name(s.Source), " ", s.Revision, " ", carried)
}

// summarize returns the summary of the runtime in a ConfigMap; "" when there is none.
func summarize(text string) string {
	s, carried := readText(text)
	if s == nil {
		return ""
	}
	return s.summaryWith(carried)
}

// readText tells whose content the runtime in a ConfigMap is, without that content, and the revision that it
// carries, right or wrong; nil when there is none.
func readText(text string) (s *Snapshot, carried string) {
	if value, found := readTexts.Get(text); found {
		read := value.(textRead)
		return read.snapshot, read.carried
	}
	var read textRead
	object, err := yamlObject(text)
	if err == nil {
		if taken, err := Take(object); err == nil {
			read.snapshot = &Snapshot{Source: taken.Source, Revision: taken.Revision}
			read.carried = annotation(object, v1alpha1.AnnotationRuntimeRevision)
		}
	}
	rememberText(text, read)
	return read.snapshot, read.carried
}

// summaryOf returns the summary of a runtime, with the revision that it has and the one that
// it carries; "" when it is none.
func summaryOf(runtime map[string]any) string {
	s, err := Take(runtime)
	if err != nil {
		return ""
	}
	return s.summaryWith(annotation(runtime, v1alpha1.AnnotationRuntimeRevision))
}

// YAML writes the runtime as Trainer reads it from a ConfigMap.
func (s *Snapshot) YAML() (string, error) {
	text, err := ToYAML(s.object)
	if err == nil && !s.Holds(text) {
		err = errors.New("the runtime cannot be written as YAML")
	}
	return text, err
}

// ToYAML writes a value, which is as JSON decodes into any, as YAML with sorted keys.
func ToYAML(value any) (string, error) {
	var printable strings.Builder
	for _, r := range string(encode(value)) {
		// YAML takes these only escaped, JSON either way. They can only be in strings.
		if r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&printable, `\u%04x`, r)
			continue
		}
		printable.WriteRune(r)
	}
	text, err := yaml.JSONToYAML([]byte(printable.String()))
	return string(text), err
}

// Spec returns the spec of the runtime, which carries its revision and source and must not be
// changed.
func (s *Snapshot) Spec() map[string]any {
	spec, _ := s.object["spec"].(map[string]any)
	return spec
}

// JobSetSpec returns the spec of the runtime's JobSet template, which must not be changed.
func (s *Snapshot) JobSetSpec() map[string]any {
	template, _ := s.Spec()["template"].(map[string]any)
	jobSet, _ := template["spec"].(map[string]any)
	return jobSet
}

// Settings returns what the runtime said about the lifecycle of its TrainJobs.
func (s *Snapshot) Settings() trainer.RuntimeSettings { return trainer.SettingsOf(s.object) }

// SettingsOf returns what the runtime of a TrainJob, as JSON decodes into a map, says; nil is one that
// is gone, be it for a moment. What is sealed of it into the TrainJob counts in its place: what is removed
// for want of it would not come back with it.
func SettingsOf(job *trainer.TrainJob, runtime map[string]any) trainer.RuntimeSettings {
	if runtime != nil {
		return trainer.SettingsOf(runtime)
	}
	if sealed, err := Of(job); err == nil && sealed != nil {
		return sealed.Settings()
	}
	return trainer.RuntimeSettings{}
}

// Object makes the TrainingRuntimeSnapshot of a TrainJob.
func (s *Snapshot) Object(job *trainer.TrainJob) *v1alpha1.TrainingRuntimeSnapshot {
	object := &v1alpha1.TrainingRuntimeSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       job.Namespace,
			Name:            job.Name,
			Annotations:     sourceAnnotations(s),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, trainer.GroupVersion.WithKind(trainer.TrainJobKind))},
		},
		Spec: v1alpha1.TrainingRuntimeSnapshotSpec{
			Source:   s.Source,
			Revision: s.Revision,
			SealedAt: metav1.NewTime(s.SealedAt),
		},
	}
	object.Spec.RuntimeSpec.Raw = encode(s.object["spec"])
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.TrainingRuntimeSnapshotKind))
	return object
}

// sourceAnnotations say where a TrainingRuntimeSnapshot came from.
func sourceAnnotations(s *Snapshot) map[string]string {
	return map[string]string{v1alpha1.AnnotationSnapshotSource: Name(s.Source), v1alpha1.AnnotationRuntimeSource: Name(s.Source)}
}

// FromObject reads the runtime that a TrainingRuntimeSnapshot holds. What says of itself that
// it is another than it is, is an error.
func FromObject(object *v1alpha1.TrainingRuntimeSnapshot) (*Snapshot, error) {
	source, content := object.Spec.Source, object.Spec.RuntimeSpec.Raw
	key := fmt.Sprintf("%q %d ", []string{object.Namespace, object.Spec.Revision, source.APIVersion, source.Kind, source.Name, string(source.UID)}, source.Generation) + string(content)
	if s := recall(readObjects, key, object.Spec.SealedAt.Time); s != nil {
		return s, nil
	}
	var spec map[string]any
	if err := json.Unmarshal(content, &spec); err != nil {
		return nil, err
	}
	metadata := map[string]any{"name": source.Name}
	if source.UID != "" {
		metadata["uid"], metadata["generation"] = string(source.UID), source.Generation
	}
	if source.Kind == trainer.TrainingRuntimeKind {
		metadata["namespace"] = object.Namespace
	}
	s, err := Take(map[string]any{"apiVersion": source.APIVersion, "kind": source.Kind, "metadata": metadata, "spec": spec})
	if err != nil {
		return nil, err
	}
	if s.Revision != object.Spec.Revision {
		return nil, fmt.Errorf("the revision of its content is %s, not %s", s.Revision, object.Spec.Revision)
	}
	s.SealedAt = object.Spec.SealedAt.Time
	remember(readObjects, key, s, content)
	return s, nil
}
