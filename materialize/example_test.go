package materialize_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"childlog/eventlog"
	"childlog/materialize"
	"childlog/policy"
	"childlog/replay"
	"childlog/snapshot"
)

// Example is the whole life of a delegation, as a harness writes it: open a
// store, make a root, capture its policy, make a child, append, let the
// process go, and resume the child in another one.
func Example() {
	ctx := context.Background()
	tmp, err := os.MkdirTemp("", "childlog-example-")
	check(err)
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "store")
	_, err = eventlog.Init(ctx, dir)
	check(err)

	// The first process.
	store, err := eventlog.Open(ctx, dir, eventlog.Options{})
	check(err)
	root, err := materialize.Root(ctx, store, materialize.RootRequest{
		Label:     "release notes",
		Workspace: "/srv/project",
		Sandbox:   &policy.Setting{Mode: policy.WorkspaceWrite},
	})
	check(err)

	capture, err := snapshot.Take(ctx, store, root.ID, snapshot.Options{}) // before anything else
	check(err)
	child, err := materialize.Child(ctx, store, capture, materialize.Request{Key: "run 4, call 7", Label: "collect changes"})
	check(err)

	run, err := replay.Activate(ctx, store, child.ID, replay.AsParent(root.ID))
	check(err)
	message, err := eventlog.MakeFacts(map[string]any{"message": "m1"})
	check(err)
	_, err = store.Append(ctx, eventlog.Batch{Session: child.ID, Expect: eventlog.At(run.Head), Epoch: run.Epoch, Events: []eventlog.NewEvent{
		{Type: eventlog.TypeUserMessage, Facts: message, Media: eventlog.MediaText, Content: []byte("list the changes since v1.4")},
	}})
	check(err)

	// The parent's later switch is the parent's own affair.
	_, _, err = replay.Switch(ctx, store, root.ID, replay.Change{Sandbox: &policy.Setting{Mode: policy.DangerFullAccess}})
	check(err)
	check(store.Close())

	// Another process, days later.
	store, err = eventlog.Open(ctx, dir, eventlog.Options{ReadOnly: true})
	check(err)
	defer store.Close()
	resumed, err := replay.Resume(ctx, store, replay.Request{Session: child.ID, By: replay.AsParent(root.ID)})
	check(err)
	fmt.Println("sandbox:  ", resumed.Policy.Sandbox.Value)
	fmt.Println("approvals:", resumed.Policy.Approvals)
	fmt.Println("status:   ", resumed.Status)
	// Output:
	// sandbox:   workspace-write /srv/project (network off)
	// approvals: never
	// status:    interrupted
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
