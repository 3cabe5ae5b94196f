package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/signalbox-dev/signalbox/api/v1alpha1"
	"github.com/signalbox-dev/signalbox/internal/trainer"
)

const (
	cluster_   = trainer.ClusterTrainingRuntimeKind
	namespaced = trainer.TrainingRuntimeKind
)

// A runtime that is deleted while a TrainJob uses it: on stock nothing of the TrainJob can be
// changed any more.
func TestGuardRuntimeDeletedInUse(t *testing.T) {
	t.Parallel()
	const gone = "must be created before the TrainJob is created"
	changes := map[string]string{
		"suspended":           `{"spec":{"suspend":true}}`,
		"labelled":            `{"metadata":{"labels":{"team":"x"}}}`,
		"rid of a finalizer":  `{"metadata":{"finalizers":null}}`,
		"annotated for Kueue": `{"metadata":{"annotations":{"a":"b"}}}`,
	}
	used := func(s *scene, kind string) *unstructured.Unstructured {
		runtime := s.stored(s.object(kind, "train", jobSetOf(oldImage)))
		s.createOn(runtime, "job", set([]any{"example.com/keep"}, "metadata", "finalizers"))
		s.running("job")
		return runtime
	}
	for _, kind := range []string{namespaced, cluster_} {
		t.Run("stock freezes the TrainJob of a "+kind, func(t *testing.T) {
			t.Parallel()
			s := newSceneOn(t, stock)
			runtime := used(s, kind)
			s.must(s.remove(runtime))
			for _, patch := range changes {
				s.refused("job", patch, gone)
			}
			// Deleted, it stays for ever: its finalizer cannot be dropped.
			s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
			s.refused("job", changes["rid of a finalizer"], gone)
			s.must(s.cluster.Client.Create(s.ctx, s.object(kind, "train", jobSetOf(oldImage))))
			s.eventually("the end of its finalizer", func() (bool, string) {
				err := s.patchAny(s.trainJob("job"), changes["rid of a finalizer"])
				return err == nil, fmt.Sprint(err)
			})
			s.deleted("job")
			if kind == cluster_ {
				s.must(s.remove(runtime))
			}
		})
		t.Run("signalbox denies it for a "+kind, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			runtime := used(s, kind)
			s.inUse(runtime)
			if err := s.remove(runtime); !apierrors.IsForbidden(err) {
				t.Fatalf("deleted with %v", err)
			}
			for what, patch := range changes {
				if err := s.patchAny(s.trainJob("job"), patch); err != nil {
					t.Errorf("not %s: %v", what, err)
				}
			}
			s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
			s.deleted("job")
			s.removed(runtime)
		})
	}
}

// Whether a runtime may go depends on whether a TrainJob that is not finished refers to it, in
// whatever state it is.
func TestGuardDeletion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// jobs makes the TrainJobs of the runtime.
		jobs func(*scene, client.Object)
		used bool
		// end makes an end of a use.
		end func(*scene)
	}{
		"no TrainJob": {jobs: func(*scene, client.Object) {}},
		"a suspended one, deleted": {
			jobs: func(s *scene, runtime client.Object) { s.createOn(runtime, "job", suspended()) },
			used: true, end: func(s *scene) { s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job"))) },
		},
		"a running one, finished": {
			jobs: func(s *scene, runtime client.Object) { s.createOn(runtime, "job"); s.running("job") },
			used: true, end: func(s *scene) { s.finish("job") },
		},
		"a running one, out of time": {
			jobs: func(s *scene, runtime client.Object) {
				s.createOn(runtime, "job", deadlineAnnotation(25))
				s.running("job")
			},
			used: true, end: func(*scene) {},
		},
		"a paused one, deleted": {
			jobs: func(s *scene, runtime client.Object) {
				s.createOn(runtime, "job")
				s.running("job")
				s.suspend("job")
				s.noPods("job")
			},
			used: true, end: func(s *scene) { s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job"))) },
		},
		"one that is held while it is deleted": {
			jobs: func(s *scene, runtime client.Object) {
				s.createOn(runtime, "job", suspended(), set([]any{"example.com/keep"}, "metadata", "finalizers"))
				s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job")))
			},
			used: true, end: func(s *scene) { s.patch("job", `{"metadata":{"finalizers":null}}`) },
		},
		"one that somebody else runs": {
			jobs: func(s *scene, runtime client.Object) {
				s.createOn(runtime, "job", set("kueue.x-k8s.io/multikueue", "spec", "managedBy"))
			},
			used: true, end: func(s *scene) { s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job"))) },
		},
		"one in Kueue's queue, deleted": {
			jobs: func(s *scene, runtime client.Object) {
				s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "0"))
				s.createOn(runtime, "job", queued(), oneCPU())
			},
			used: true, end: func(s *scene) { s.must(s.cluster.Client.Delete(s.ctx, s.trainJob("job"))) },
		},
		"one that Kueue runs, finished": {
			jobs: func(s *scene, runtime client.Object) {
				s.must(s.cluster.AddQueue(s.ctx, s.namespace, "queue", "1"))
				s.createOn(runtime, "job", queued(), oneCPU())
				s.running("job")
			},
			used: true, end: func(s *scene) {
				s.finish("job")
				// The quota is free again, so nothing of Kueue's depends on the runtime any more.
				s.create("next", queued(), oneCPU())
				s.running("next")
			},
		},
		"a finished one": {
			jobs: func(s *scene, runtime client.Object) {
				s.createOn(runtime, "job")
				s.finish("job")
				s.becomes("job", trainer.ConditionComplete, "True/AllJobsCompleted")
			},
			end: func(*scene) {},
		},
		"one on the namesake of the other kind": {
			jobs: func(s *scene, runtime client.Object) {
				namesake := s.object(namespaced, runtime.GetName(), jobSetOf(oldImage))
				if runtime.GetNamespace() != "" {
					namesake = s.object(cluster_, "train", jobSetOf(oldImage))
					namesake.SetName(runtime.GetName())
				}
				// The name of one in a namespace is the scene's own too, here.
				s.stored(namesake)
				s.createOn(namesake, "job", suspended())
				s.inUse(namesake)
			},
			end: func(*scene) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{namespaced, cluster_} {
				s := newScene(t)
				object := s.object(kind, "train", jobSetOf(oldImage))
				object.SetName(s.namespace + "-train")
				runtime := s.stored(object)
				tc.jobs(s, runtime)
				if tc.used {
					s.inUse(runtime)
					err := s.remove(runtime)
					want := refusedBy + kind + " " + strings.TrimPrefix(runtime.GetNamespace()+"/"+runtime.GetName(), "/") + " is in use by 1 unfinished TrainJob: " + s.namespace + "/job" + goOn
					if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), want) {
						t.Fatalf("%s: deleted with %v, want %s", kind, err, want)
					}
					tc.end(s)
					s.removed(runtime)
				} else {
					// At once; where there is a TrainJob that was in use, when the guard knows of its end.
					if tc.end == nil {
						s.must(s.remove(runtime))
					} else {
						s.removed(runtime)
					}
				}
			}
		})
	}
}

// What a user reads who deletes runtimes in use. The text says how to go on, and that works.
func TestGuardDeletionByKubectl(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mine := s.stored(s.object(namespaced, "mine", jobSetOf(oldImage)))
	torch := s.stored(s.object(cluster_, "torch", jobSetOf(oldImage)))
	s.stored(s.object(namespaced, "free", jobSetOf(oldImage)))
	for i := range 13 {
		s.createOn(mine, fmt.Sprintf("job-%02d", i), suspended())
	}
	s.createOn(torch, "only", suspended())
	s.inUse(torch)
	list := "TrainingRuntime " + s.namespace + "/mine is in use by %d unfinished TrainJobs: "
	for i := range 10 {
		list += fmt.Sprintf("%s/job-%02d, ", s.namespace, i)
	}
	const from = "Error from server (Forbidden): "
	s.eventually("the guard to know of 13", func() (bool, string) {
		err := s.remove(mine, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "13 unfinished"), fmt.Sprint(err)
	})
	s.prints(from+refusedBy+fmt.Sprintf(list, 13)+"and 3 more"+goOn+"\n", s.kubectl("", "delete", "trainingruntime", "mine"))
	s.prints(from+refusedBy+"ClusterTrainingRuntime "+torch.GetName()+" is in use by 1 unfinished TrainJob: "+s.namespace+"/only"+goOn+"\n",
		s.kubectl("", "delete", "clustertrainingruntime", torch.GetName()))

	// Each of a collection is judged by itself.
	s.prints("trainingruntime.trainer.kubeflow.org \"free\" deleted from "+s.namespace+" namespace\n"+
		from+refusedBy+fmt.Sprintf(list, 13)+"and 3 more"+goOn+"\n", s.kubectl("", "delete", "trainingruntimes", "--all"))
	for i := range 3 {
		s.must(s.cluster.Client.Delete(s.ctx, s.trainJob(fmt.Sprintf("job-%02d", 12-i))))
	}
	s.eventually("the guard to know of 10", func() (bool, string) {
		err := s.remove(mine, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "10 unfinished"), fmt.Sprint(err)
	})
	s.prints(from+refusedBy+strings.TrimSuffix(fmt.Sprintf(list, 10), ", ")+goOn+"\n", s.kubectl("", "delete", "trainingruntime", "mine"))

	s.prints("trainingruntime.trainer.kubeflow.org/mine annotated\n",
		s.kubectl("", "annotate", "trainingruntime", "mine", v1alpha1.AnnotationAllowDisruption+"=true"))
	s.prints("trainingruntime.trainer.kubeflow.org \"mine\" deleted from "+s.namespace+" namespace\n", s.kubectl("", "delete", "trainingruntime", "mine"))
}

// A collection is deleted as far as it may go.
func TestGuardDeletionOfACollection(t *testing.T) {
	t.Parallel()
	for name, delete_ := range map[string]func(*scene, string) error{
		"by label": func(s *scene, kind string) error {
			return s.cluster.Client.DeleteAllOf(s.ctx, s.any(kind), client.InNamespace(s.inCluster(kind)), client.MatchingLabels{"of": s.namespace})
		},
		"by label in a dry run": func(s *scene, kind string) error {
			return s.cluster.Client.DeleteAllOf(s.ctx, s.any(kind), client.InNamespace(s.inCluster(kind)), client.MatchingLabels{"of": s.namespace}, client.DryRunAll)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{namespaced, cluster_} {
				s := newScene(t)
				labelled := func(name string) *unstructured.Unstructured {
					object := s.object(kind, name, jobSetOf(oldImage))
					object.SetLabels(map[string]string{"of": s.namespace})
					return s.stored(object)
				}
				labelled("a-free")
				used := labelled("b-used")
				labelled("c-free")
				s.createOn(used, "job", suspended())
				s.inUse(used)
				err := delete_(s, kind)
				want := refusedBy + kind + " " + strings.TrimPrefix(used.GetNamespace()+"/"+used.GetName(), "/") + " is in use by 1 unfinished TrainJob: " + s.namespace + "/job" + goOn
				if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("%s: deleted with %v, want %s", kind, err, want)
				}
				s.must(s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(used), bare(used)))

				// Without what is in use, or with leave for it, all go.
				s.must(s.allowDisruption(used))
				s.must(delete_(s, kind))
				if !strings.Contains(name, "dry run") {
					left := &unstructured.UnstructuredList{}
					left.SetGroupVersionKind(trainer.GroupVersion.WithKind(kind + "List"))
					s.must(s.cluster.Client.List(s.ctx, left, client.MatchingLabels{"of": s.namespace}))
					if len(left.Items) != 0 {
						t.Errorf("%d are left", len(left.Items))
					}
				}
			}
		})
	}
}

// any is an object of a kind, without a name.
func (s *scene) any(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(trainer.GroupVersion.WithKind(kind))
	return object
}

// inCluster is the namespace in which runtimes of a kind are.
func (s *scene) inCluster(kind string) string {
	if kind == cluster_ {
		return ""
	}
	return s.namespace
}

// A namespace goes with runtimes that are in use, and so does what garbage collection takes.
func TestGuardHoldsNoEndUp(t *testing.T) {
	t.Parallel()
	t.Run("of a namespace", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		runtime := s.stored(s.object(namespaced, "train", jobSetOf(oldImage)))
		for i := range 5 {
			s.createOn(runtime, fmt.Sprintf("job-%d", i))
		}
		s.running("job-0")
		s.inUse(runtime)
		namespace := &corev1.Namespace{}
		namespace.Name = s.namespace
		s.must(s.cluster.Client.Delete(s.ctx, namespace))
		s.eventually("the end of the namespace", func() (bool, string) {
			err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(namespace), namespace)
			return apierrors.IsNotFound(err), s.text(namespace.Status)
		})
	})
	t.Run("by those who end namespaces and collect garbage", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		runtime := s.stored(s.object(namespaced, "train", jobSetOf(oldImage)))
		s.createOn(runtime, "job", suspended())
		s.inUse(runtime)
		for _, user := range []string{"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:generic-garbage-collector"} {
			c, err := s.cluster.ClientFor(user)
			s.must(err)
			if err := c.Delete(s.ctx, bare(runtime), client.DryRunAll); err != nil {
				t.Errorf("by %s: %v", user, err)
			}
		}
	})
	t.Run("by garbage collection", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		owner := &corev1.ConfigMap{}
		owner.Namespace, owner.Name = s.namespace, "owner"
		s.must(s.cluster.Client.Create(s.ctx, owner))
		object := s.object(namespaced, "train", jobSetOf(oldImage))
		set([]any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": string(owner.UID)}}, "metadata", "ownerReferences")(object)
		runtime := s.stored(object)
		s.createOn(runtime, "job", suspended())
		s.inUse(runtime)
		s.must(s.cluster.Client.Delete(s.ctx, owner))
		s.eventually("the end of the runtime", func() (bool, string) {
			err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(runtime), bare(runtime))
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	})
	t.Run("of a runtime that is held by a finalizer", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		object := s.object(namespaced, "train", jobSetOf(oldImage))
		object.SetFinalizers([]string{"example.com/keep"})
		runtime := s.stored(object)
		s.must(s.remove(runtime))
		s.createOn(runtime, "job", suspended())
		// It is on its way out: no deletion and no edit of it is held up any more.
		s.must(s.remove(runtime))
		s.must(s.reshape(runtime, jobSetWith("", replicatedJob("other", "", ""))))
		s.must(s.patchAny(bare(runtime), `{"metadata":{"finalizers":null}}`))
		s.eventually("the end of the runtime", func() (bool, string) {
			err := s.cluster.Client.Get(s.ctx, client.ObjectKeyFromObject(runtime), bare(runtime))
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	})
}
