package explain

import (
	"fmt"
	"time"

	"github.com/signalbox-dev/signalbox/internal/kubectl"
)

// Content is which content of its runtime a TrainJob runs on.
type Content struct {
	// Runtime is the one that it refers to, as KIND/NAME.
	Runtime string       `json:"runtime"`
	From    kubectl.From `json:"from"`
	// Text says where the content is from, or why that is not known.
	Text     string `json:"text"`
	Revision string `json:"revision,omitempty"`
	// SealedAt is when it was sealed into the TrainJob; zero where it is not.
	SealedAt time.Time `json:"sealedAt,omitzero"`
	// LiveRevision is of the runtime now; "" where it is gone or not known. Changed is nil where it is
	// not known whether the runtime has changed since.
	LiveRevision string `json:"liveRevision,omitempty"`
	Changed      *bool  `json:"changed,omitempty"`
	Gone         bool   `json:"gone,omitempty"`
	// Next is what it is built from when it is next resumed; "" when it has finished.
	Next kubectl.From `json:"next,omitempty"`
	// Images are those of the containers of the content, which the TrainJob may set otherwise.
	Images []Image `json:"images,omitempty"`
}

// Image is that of one container.
type Image struct {
	// Container is REPLICATEDJOB/CONTAINER.
	Container string `json:"container"`
	Image     string `json:"image"`
}

// contentOf says which content the TrainJob runs on.
func contentOf(f Facts) Content {
	from := f.Content
	content := Content{
		Runtime: runtimeOf(f.Job), From: from.From, Text: textOf(from.From), Revision: from.Revision, LiveRevision: from.Live.Revision,
		Gone: from.Live.Gone, Next: from.Next,
	}
	if from.Why != "" {
		content.Text += ": " + from.Why
	}
	if from.From == kubectl.FromSeal && from.Sealed != nil {
		content.SealedAt = whole(from.Sealed.SealedAt)
	}
	if changed, known := from.Changed(from.Live); known {
		content.Changed = &changed
	}
	if from.Snapshot != nil {
		content.Images = imagesOf(from.Snapshot.JobSetSpec())
	}
	return content
}

// textOf says where content is from.
func textOf(from kubectl.From) string {
	if from == kubectl.FromUnknown {
		return "not known"
	}
	return from.Text()
}

// imagesOf returns the images of a JobSet's spec, in its order.
func imagesOf(jobSet map[string]any) []Image {
	var images []Image
	for _, job := range listOf(jobSet["replicatedJobs"]) {
		pod := childOf(job, "template", "spec", "template", "spec")
		for _, key := range []string{"initContainers", "containers"} {
			for _, container := range listOf(pod[key]) {
				if image, _ := container["image"].(string); image != "" {
					images = append(images, Image{Container: fmt.Sprintf("%v/%v", job["name"], container["name"]), Image: image})
				}
			}
		}
	}
	return images
}

func childOf(object map[string]any, path ...string) map[string]any {
	for _, key := range path {
		object, _ = object[key].(map[string]any)
	}
	return object
}

func listOf(value any) []map[string]any {
	entries, _ := value.([]any)
	objects := make([]map[string]any, 0, len(entries))
	for _, entry := range entries {
		if object, ok := entry.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}
