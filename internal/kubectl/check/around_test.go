package check

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestJudgeAround(t *testing.T) {
	ca := newAuthority(t, now.AddDate(8, 0, 0))
	judged(t, ca, map[string]verdict{
		"an old Kubernetes": {
			func(f *Facts) { f.Version = "v1.32.9" },
			[]Item{{"Kubernetes", Fault, "v1.32.9", "upgrade it to 1.33 or later"}}, 1,
		},
		"a pre-release of Kubernetes, with a build": {
			func(f *Facts) { f.Version = "v1.36.0-rc.1+abc" },
			[]Item{{"Kubernetes", OK, "v1.36.0-rc.1+abc", ""}}, 0,
		},
		"this machine is behind": {
			func(f *Facts) { f.Skew.Value = 3 * time.Minute },
			[]Item{{"clock", Warning, "this machine's is 3m behind the API server's", "set it right; what kubectl signalbox tells is by the API server's"}}, 0,
		},
		"this machine is ahead": {
			func(f *Facts) { f.Skew.Value = -6 * time.Second },
			[]Item{{"clock", Warning, "this machine's is 6s ahead of the API server's", "set it right; what kubectl signalbox tells is by the API server's"}}, 0,
		},
		"clocks that differ as much as a request takes": {func(f *Facts) { f.Skew.Value = 5 * time.Second }, nil, 0},
		"Trainer 2.2": {
			func(f *Facts) { f.CRDs["trainjobs.trainer.kubeflow.org"] = seen(trainerCRD(true, false)) },
			[]Item{{"Trainer", OK, "2.2: it enforces spec.activeDeadlineSeconds, and keeps no runtimes: a TrainJob that was suspended goes on with the runtime as it is then", ""}}, 0,
		},
		"Trainer 2.0": {
			func(f *Facts) { f.CRDs["trainjobs.trainer.kubeflow.org"] = seen(trainerCRD(false, false)) },
			[]Item{{"Trainer", OK, "2.0 or 2.1: deadlines are by annotation or policy, and it keeps no runtimes: a TrainJob that was suspended goes on with the runtime as it is then", ""}}, 0,
		},
		"no right to read the CRD of TrainJobs": {
			func(f *Facts) {
				f.CRDs["trainjobs.trainer.kubeflow.org"] = unread[*apiextensionsv1.CustomResourceDefinition]()
			},
			[]Item{{"Trainer", Unknown, "installed; what it can do is not known: no right to do so", ""}}, 2,
		},
		"no Trainer": {
			func(f *Facts) {
				for _, d := range ofTrainer {
					delete(f.Served.Value, d.key())
					f.CRDs[d.Name] = missing[*apiextensionsv1.CustomResourceDefinition]()
				}
				f.Runtimes = map[string]Seen[Audit]{"ClusterTrainingRuntime": missing[Audit](), "TrainingRuntime": missing[Audit]()}
			},
			[]Item{{"Trainer", Fault, "not installed", getTrainer}}, 1,
		},
		"a Trainer without a CRD, and with a version that is another": {
			func(f *Facts) {
				delete(f.Served.Value, "trainer.kubeflow.org/TrainingRuntime")
				f.CRDs["trainingruntimes.trainer.kubeflow.org"] = missing[*apiextensionsv1.CustomResourceDefinition]()
				f.Served.Value["trainer.kubeflow.org/TrainJob"] = []string{"v2"}
			},
			[]Item{
				{"Trainer", Fault, "trainjobs.trainer.kubeflow.org serves v2, and needed is v1alpha1", getTrainer},
				{"Trainer", Fault, "its trainingruntimes.trainer.kubeflow.org is missing", getTrainer},
			}, 1,
		},
		"Trainer's controller is away": {
			func(f *Facts) { f.Trainers.Value[0].Status.ReadyReplicas = 0 },
			[]Item{{"Trainer", Fault, "no pod of kubeflow-system/kubeflow-trainer-controller-manager is ready: TrainJobs do not start, and do not say that they have ended", "look at its pods: kubectl --namespace kubeflow-system get pods"}}, 1,
		},
		"nothing looks like Trainer's Deployment": {
			func(f *Facts) { f.Trainers.Value = nil },
			[]Item{{"Trainer", Warning, "no Deployment looks like Trainer's: TrainJobs do not start if nothing else runs its controller", "find out what runs it, and see that trainer.serviceAccount of the chart is who it acts as"}}, 0,
		},
		"Trainer acts as somebody else": {
			func(f *Facts) { f.Trainers.Value[0].Namespace = "ml" },
			[]Item{{"Trainer", Fault, "it acts as system:serviceaccount:ml:kubeflow-trainer-controller-manager, and Signalbox takes it for " + trainerUser + ": what it ends before the deadline stays ended", helm + " --set trainer.serviceAccount=ml/kubeflow-trainer-controller-manager"}}, 1,
		},
		"no JobSet": {
			func(f *Facts) {
				delete(f.Served.Value, "jobset.x-k8s.io/JobSet")
				f.CRDs["jobsets.jobset.x-k8s.io"] = missing[*apiextensionsv1.CustomResourceDefinition]()
			},
			[]Item{{"JobSet", Fault, "not installed", getJobSet}}, 1,
		},
		"neither discovery nor CRDs": {
			func(f *Facts) {
				f.Served = unread[map[string][]string]()
				for name := range f.CRDs {
					f.CRDs[name] = unread[*apiextensionsv1.CustomResourceDefinition]()
				}
			},
			[]Item{
				{"Trainer", Unknown, "not known: no right to do so", ""}, {"JobSet", Unknown, "not known: no right to do so", ""},
				{"CRDs", Unknown, "not known: no right to do so", ""}, {"Kueue", Unknown, "not known: no right to do so", ""},
			}, 2,
		},
		"no Kueue": {
			func(f *Facts) {
				delete(f.Served.Value, ofKueue.key())
				f.CRDs[ofKueue.Name] = missing[*apiextensionsv1.CustomResourceDefinition]()
			},
			[]Item{{"Kueue", OK, "not installed, and not needed", ""}}, 0,
		},
		"a Kueue of the future": {
			func(f *Facts) { f.Served.Value[ofKueue.key()] = []string{"v1"} },
			[]Item{{"Kueue", Warning, "serves v1, of which this Signalbox knows none: " + restarts, "upgrade Signalbox"}}, 0,
		},
		"Kueue acts as somebody else": {
			func(f *Facts) { f.Kueues.Value[0].Spec.Template.Spec.ServiceAccountName = "queue" },
			[]Item{{"Kueue", Fault, "it acts as system:serviceaccount:kueue-system:queue, and Signalbox takes it for " + kueueUser + ": " + restarts, helm + " --set kueue.serviceAccount=kueue-system/queue"}}, 1,
		},
		"Kueue is not shown seals": {
			func(f *Facts) { f.Mutating.Value.Webhooks = f.Mutating.Value.Webhooks[:3] },
			[]Item{{"webhooks", OK, "6 webhooks registered, called at signalbox-webhook.signalbox-system.svc", ""}, {"Kueue", Warning, "serves v1beta1, v1beta2; it is not shown what sealed TrainJobs run on: " + restarts, helm + " --set kueue.showSnapshots=true"}}, 0,
		},
		"nothing looks like Kueue's Deployment": {
			func(f *Facts) { f.Kueues.Value = nil },
			[]Item{{"Kueue", Warning, "serves v1beta1, v1beta2; no Deployment looks like Kueue's, so that it may act as somebody else than " + kueueUser, "find out whether that is its service account, and set kueue.serviceAccount of the chart if not"}}, 0,
		},
		"no right to list Deployments": {
			func(f *Facts) { f.Kueues, f.Trainers = unread[[]appsv1.Deployment](), unread[[]appsv1.Deployment]() },
			[]Item{
				{"Trainer", Unknown, "whether its controller runs, and who it acts as, is not known: no right to do so", ""},
				{"Kueue", Unknown, "serves v1beta1, v1beta2; whether it acts as " + kueueUser + " is not known: no right to do so", ""},
			}, 2,
		},
	})
}
