package multikueue_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

// change alters a TrainJob before it is created.
type change func(job *unstructured.Unstructured)

func set(value any, path ...string) change {
	return func(job *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(job.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

func managed() change               { return set(multiKueue, "spec", "managedBy") }
func deadline(seconds int64) change { return set(seconds, "spec", "activeDeadlineSeconds") }

func annotated(key, value string) change { return set(value, "metadata", "annotations", key) }

// unqueued takes the TrainJob out of the queue, so that Kueue has nothing to do with it.
func unqueued() change { return set(map[string]any{}, "metadata", "labels") }

// deadlineAnnotation limits the TrainJob by annotation: stock Trainer does not know it, so
// whatever ends the TrainJob is Signalbox.
func deadlineAnnotation(seconds int) change {
	return annotated(v1alpha1.AnnotationActiveDeadlineSeconds, fmt.Sprint(seconds))
}

// trainJob makes the manifest of a TrainJob of the queue, with one node of one CPU on the
// runtime "train".
func (s *side) trainJob(name string, changes ...change) *unstructured.Unstructured {
	job := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"runtimeRef": map[string]any{"kind": trainer.TrainingRuntimeKind, "name": "train"},
			"trainer":    map[string]any{"numNodes": int64(1), "resourcesPerNode": map[string]any{"requests": map[string]any{"cpu": "1"}}},
		},
	}}
	job.SetGroupVersionKind(trainer.GroupVersion.WithKind(trainer.TrainJobKind))
	job.SetNamespace(s.namespace)
	job.SetName(name)
	job.SetLabels(map[string]string{"kueue.x-k8s.io/queue-name": queue})
	for _, change := range changes {
		change(job)
	}
	return job
}

// create creates a TrainJob and returns it as stored.
func (s *side) create(name string, changes ...change) *trainer.TrainJob {
	s.Helper()
	job := s.trainJob(name, changes...)
	s.must(s.cluster.Client.Create(s.ctx, job))
	return s.view(job)
}

// view is the part of a TrainJob that the rules read.
func (s *side) view(job *unstructured.Unstructured) *trainer.TrainJob {
	s.Helper()
	view := &trainer.TrainJob{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object, view))
	return view
}

// stored reads a TrainJob whole; nil when there is none.
func (s *side) stored(name string) *unstructured.Unstructured {
	s.Helper()
	job := s.trainJob(name)
	if !s.find(job) {
		return nil
	}
	return job
}

// get reads a TrainJob.
func (s *side) get(name string) *trainer.TrainJob {
	s.Helper()
	job := s.stored(name)
	if job == nil {
		s.Fatalf("there is no TrainJob %s on the %s", name, s.name)
	}
	return s.view(job)
}

// conditionOf returns a condition of any object, an empty one when there is none.
func conditionOf(object *unstructured.Unstructured, kind string) metav1.Condition {
	var view struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &view); err != nil {
		panic(err)
	}
	if c := meta.FindStatusCondition(view.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// becomes waits until a condition of a TrainJob reads STATUS/REASON. It returns the condition,
// and when it was seen.
func (s *side) becomes(name, kind, want string) (metav1.Condition, time.Time) {
	s.Helper()
	var is metav1.Condition
	s.eventually(fmt.Sprintf("%s=%s of TrainJob %s", kind, want, name), func() (bool, string) {
		job := s.stored(name)
		if job == nil {
			return false, "no TrainJob"
		}
		is = conditionOf(job, kind)
		return string(is.Status)+"/"+is.Reason == want, s.state(name)
	})
	return is, time.Now()
}

// state shows what there is of a TrainJob, for a failure's text.
func (s *side) state(name string) string {
	s.Helper()
	job := s.stored(name)
	if job == nil {
		return "no TrainJob"
	}
	text := fmt.Sprintf("spec %s, status %s, annotations %v", s.text(job.Object["spec"]), s.text(job.Object["status"]), job.GetAnnotations())
	if workload := s.workload(name); workload != nil {
		text += ", Workload " + s.text(workload.Object["status"])
	}
	for _, pod := range s.pods(name) {
		text += fmt.Sprintf(", pod %s %s", pod.Name, pod.Status.Phase)
	}
	return text
}

func (s *side) pods(name string) []corev1.Pod {
	s.Helper()
	var list corev1.PodList
	s.must(s.cluster.Client.List(s.ctx, &list, client.InNamespace(s.namespace), client.MatchingLabels{"jobset.sigs.k8s.io/jobset-name": name}))
	return list.Items
}

// running waits until the pods of a TrainJob run, and returns them.
func (s *side) running(name string) []corev1.Pod {
	s.Helper()
	var pods []corev1.Pod
	s.eventually("running pods of TrainJob "+name, func() (bool, string) {
		pods = s.pods(name)
		running := len(pods) > 0
		for _, pod := range pods {
			running = running && pod.Status.Phase == corev1.PodRunning
		}
		return running, s.state(name)
	})
	return pods
}

// finish ends the running pods of a TrainJob well.
func (s *side) finish(name string) {
	s.Helper()
	for _, pod := range s.running(name) {
		s.must(s.cluster.Client.Status().Patch(s.ctx, &pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`))))
	}
}

// stamp reads the start of the TrainJob's active period, and fails without one. It is never
// before the creation, whose second may have begun after the webhook stamped.
func (s *side) stamp(job *trainer.TrainJob) time.Time {
	s.Helper()
	at, err := time.Parse(time.RFC3339Nano, job.Annotations[v1alpha1.AnnotationResumedAt])
	if err != nil {
		s.Fatalf("stamp of TrainJob %s on the %s: %v; annotations: %v", job.Name, s.name, err, job.Annotations)
	}
	if created := job.CreationTimestamp.Time; created.After(at) {
		return created
	}
	return at
}

// workload reads the Workload of a TrainJob; nil when there is none.
func (s *side) workload(name string) *unstructured.Unstructured {
	s.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kueueKind("WorkloadList"))
	s.must(s.cluster.Client.List(s.ctx, list, client.InNamespace(s.namespace)))
	job := s.stored(name)
	for i := range list.Items {
		for _, owner := range list.Items[i].GetOwnerReferences() {
			if job != nil && owner.UID == job.GetUID() {
				return &list.Items[i]
			}
		}
	}
	return nil
}

// reserves waits until this much CPU of the side's queue is reserved.
func (s *side) reserves(want string) {
	s.Helper()
	s.eventually(want+" CPUs reserved in the queue", func() (bool, string) {
		object := kueueObject("ClusterQueue", "", s.namespace+"-"+queue, nil)
		s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(object), object))
		var view struct {
			Status struct {
				FlavorsReservation []struct {
					Resources []struct {
						Name  string `json:"name"`
						Total string `json:"total"`
					} `json:"resources"`
				} `json:"flavorsReservation"`
			} `json:"status"`
		}
		s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &view))
		for _, flavor := range view.Status.FlavorsReservation {
			for _, resource := range flavor.Resources {
				if resource.Name == "cpu" {
					return resource.Total == want, s.text(object.Object["status"])
				}
			}
		}
		return false, s.text(object.Object["status"])
	})
}
