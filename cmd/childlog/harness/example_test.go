package harness_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"childlog/cmd/childlog/harness"
	"childlog/eventlog"
)

// A harness makes a child, asks before each call, and settles. Where the store
// is held by another process only the line with Open changes.
func ExampleHarness() {
	ctx := context.Background()
	tmp, err := os.MkdirTemp("", "childlog")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "store")
	if _, err := eventlog.Init(ctx, dir); err != nil {
		log.Fatal(err)
	}

	var h harness.Harness
	h, err = harness.Open(ctx, dir, eventlog.Options{}) // or: harness.Dial(ctx, "unix:"+dir, harness.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()

	root, err := h.Root(ctx, harness.RootRequest{
		Label:     "release notes",
		Sandbox:   &harness.Sandbox{Mode: "workspace-write"},
		Workspace: "/srv/app",
	})
	if err != nil {
		log.Fatal(err)
	}
	child, err := h.Delegate(ctx, harness.DelegateRequest{
		Parent: root.Session,
		Child:  harness.Child{Key: "run 4, call 7", Role: "implement", WriteScope: []string{"docs"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("approvals:", child.Policy.Approvals.Policy)

	run, err := h.Activate(ctx, harness.ActivateRequest{Session: child.Session, By: root.Session})
	if err != nil {
		log.Fatal(err)
	}
	for i, path := range []string{"docs/notes.md", "src/main.go"} {
		answer, err := h.Check(ctx, harness.CheckRequest{
			Session: child.Session,
			Epoch:   run.Epoch,
			Record:  true,
			Call:    harness.Call{ID: fmt.Sprint("c", i), Tool: "write_file", Args: harness.JSON(fmt.Sprintf(`{"path":%q}`, path))},
		})
		if err != nil {
			log.Fatal(err) // no answer is no permission
		}
		fmt.Println(path, answer.Verdict, answer.Code)
	}
	if _, err := h.Settle(ctx, harness.SettleRequest{Session: child.Session, Epoch: run.Epoch, Outcome: "completed"}); err != nil {
		log.Fatal(err)
	}
	notices, err := h.Notices(ctx, harness.SessionRequest{Session: root.Session})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("denied:", notices.Items[0].Denied)
	// Output:
	// approvals: never
	// docs/notes.md allow allowed
	// src/main.go deny write_scope_violation
	// denied: 1
}
